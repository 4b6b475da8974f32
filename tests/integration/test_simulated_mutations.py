"""Each semantic of the simulated driver has a test that fails when the semantic is broken.

A mutation replaces a text of the C sources. The tests of the driver run on what is built of that.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dlprof.simulated.build import LIBRARY, SOURCES, build

TESTS = Path(__file__).parents[1] / "unit" / "test_simulated_driver.py"
LIMIT_S = 60
FAILED = 1  # pytest's exit status; a hang or a crash is none

BROKEN = """
queue.c
  a_stream_performs_its_work_in_order
    - stream->tail->next = work;
    + work->next = stream->head->next; stream->head->next = work;
  work_of_the_legacy_stream_runs_after_that_of_blocking_streams
    - depend(work, other->last);
    + ;
  the_legacy_stream_waits_for_blocking_streams
    - (stream == legacy || other == legacy)
    + false
  blocking_streams_wait_for_the_legacy_stream
    - depend(work, legacy->last);
    + ;
  a_non_blocking_stream_is_ordered_with_no_other
    - stream->flags != NON_BLOCKING && legacy
    + legacy
  the_stream_of_a_thread_is_a_blocking_one
    - own[device->ordinal] = new_default(device);
    + own[device->ordinal] = stream_new(device, NON_BLOCKING, 0);
  the_device_is_done_when_all_streams_are
    - : other->device == device;
    + : other->device == device && other->flags != NON_BLOCKING;
  an_event_is_reached_after_the_work_before_it
    - return !event->recorded || event->recorded->is_done;
    + return true;
    - wait_for(event->recorded);
    + ;
  recording_an_event_again_moves_its_mark
    - release(event->recorded);
    -     event->recorded = mark;
    + if (event->recorded) release(mark); else event->recorded = mark;
  a_stream_waits_for_the_place_that_an_event_marks_when_it_is_asked
    - if (event->recorded && !event->recorded->is_done) {
    + if (0) {
  a_copy_to_a_peer_without_a_stream_is_ordered_with_all_work_of_both[here]
    - if (other->device == *devices) {
    + if (other->device == *devices && other->device != place->device) {
  a_copy_to_a_peer_without_a_stream_is_ordered_with_all_work_of_both[there]
    - if (other->device == *devices) {
    + if (other->device == place->device) {
  a_copy_to_a_peer_without_a_stream
    - depend(work, stream->device->barrier);
    + ;
  only_a_path_without_order_races_and_it_always_does
    - if (!longest_ns || has_ready(stream, true)) {
    + if (1) {
    - if (event->recorded && !event->recorded->is_done) {
    + if (0) {
  what_is_left_is_reported_at_the_end[streams]
    - count += !stream->is_default && !stream->is_destroyed;
    + ;
  what_is_left_is_reported_at_the_end[events]
    - event_count++;
    + ;
kernels.c
  a_kernel_returns_before_it_is_done
    - submit(stream, perform_kernel, launch);
    + submit_and_wait(stream, perform_kernel, launch);
  a_kernel_poisons_what_its_arguments_point_to
    - poison_place(launch->pointers[i]);
    + ;
  a_kernel_of_unknown_parameters_poisons_what_its_arguments_point_to
    - launch->is_opaque = !count;
    + launch->is_opaque = true;
  a_kernel_whose_arguments_cannot_be_read_poisons_the_device
    - poison_all(launch->device);
    + ;
  a_copy_kernel_of_cupy_is_performed_by_its_name
    - launch->copies = true;
    + ;
  each_kernel_takes_the_time_that_is_set_for_its_name
    - launch->duration_ns = kernel_ns(kernel->name);
    + ;
  work_of_one_device_is_refused_on_a_stream_of_another
    - stream_device(stream) != current_device()
    + false
  a_use_after_free_is_reported[kernel]
    - if (kind == FREED && is_argument && !at) {
    + if (0) {
driver.c
  no_handle_is_the_stream_of_a_thread
    - (!handle && null_is_of_thread)
    + false
    - flags & 2 ? dlsym(own, of_thread) : NULL
    + NULL
  an_event_that_does_not_exist_is_refused
    - !event || !event->is_there
    + !event
  a_stream_waits_for_the_place_that_an_event_marks_when_it_is_asked
    - event_order(event, stream);
    + if (!event->recorded) return INVALID_HANDLE;
    +     event_order(event, stream);
  elapsed_time_is_between_two_marks
    - (event_ns(end) - event_ns(start)) / 1e6
    + (event_ns(end) - event_ns(start)) / 1e9
  an_event_without_timing_tells_no_time
    - !(flags & 2)
    + true
  a_context_belongs_to_a_thread
    - static __thread struct device *stack[MOST_CONTEXTS];
    - static __thread int depth;
    + static struct device *stack[MOST_CONTEXTS];
    + static int depth;
  a_copy_from_pageable_memory_has_read_it_when_it_returns
    - if (from_pageable && !to_pageable) {
    + if (0) {
    - if (to_pageable || (waits
    + if (to_pageable || from_pageable || (waits
  a_copy_to_pageable_memory_returns_when_it_is_done
    - if (to_pageable || (waits
    + if ((waits
  a_copy_of_pinned_memory_is_asynchronous
    - return memory_at(address).kind == NOT_KNOWN; }
    + return memory_at(address).kind != DEVICE; }
  a_copy_from_pinned_memory_without_a_stream_waits
    - (waits && (to_host || from_host))
    + false
  a_copy_to_memory_that_was_registered_waits
    - return kind == PINNED || kind == REGISTERED;
    + return kind == PINNED;
  a_stream_is_destroyed_once
    - if (!stream_exists(stream)) {
    -         report("a stream that
    + if (false) {
    +         report("a stream that
  a_copy_on_the_device
    - bool to_host = to_pageable
    + bool to_host = true
  a_memset_is_asynchronous
    - submit(stream, perform_fill, fill);
    + submit_and_wait(stream, perform_fill, fill);
  freeing_memory_waits_for_the_device
    - device_wait(current_device());
    -     return memory_free(address);
    + return memory_free(address);
  a_host_function_runs_in_the_order_of_its_stream
    - submit(stream, call, host);
    + call(host);
  an_address_tells_what_memory_it_is_in
    - bool is_host = owner.kind == PINNED ||
    + bool is_host =
    - bool is_known = owner.kind != NOT_KNOWN && owner.kind != FREED;
    + bool is_known = owner.kind != NOT_KNOWN;
  poison_goes_where_it_is_copied
    -  poison(to, size_bytes);
    + ;
    - unpoison(fill->to, size_bytes, 0);
    + ;
  poison_that_reaches_the_host_is_counted
    - poison_reached_host();
    + ;
  the_access_to_a_peer_is_switched_on_once
    - has_peer[here][there] = is_wanted;
    + ;
  each_device_can_reach_the_other
    - *can = device != peer &&
    + *can = false &&
  a_copy_to_a_peer_is_asynchronous
    - return queue_copy(to, from, size_bytes, handle, false);
    + return SUCCESS;
    - return queue_copy(to, from, size_bytes, handle, false);
    + int status = queue_copy(to, from, size_bytes, handle, false);
    +     return stream_wait(stream_of(handle)), status;
  a_copy_to_a_peer_without_a_stream
    - int status = queue_copy(to, from, size_bytes, NULL, true);
    + int status = SUCCESS;
  giving_back_memory_of_the_host_waits_for_the_device[False]
    - device_wait(current_device());
    -     return host_forget(address, PINNED);
    + return host_forget(address, PINNED);
  giving_back_memory_of_the_host_waits_for_the_device[True]
    - device_wait(current_device());
    -     return host_forget(address, REGISTERED);
    + return host_forget(address, REGISTERED);
  memory_that_the_host_can_reach
    - is_readable ? address : 0; applies = is_readable;
    + 0; applies = is_readable;
    - is_readable ? address : 0; applies = is_readable;
    + address;
    - bool is_host = owner.kind == PINNED || owner.kind == REGISTERED;
    + bool is_host = owner.kind == PINNED;
  a_use_after_free_is_reported[copy]
    - misuse(copy->device, "a copy of memory that is not allocated", target ? from : to);
    + ;
  a_use_after_free_is_reported[memset]
    - misuse(fill->device, "a memset of memory that is not allocated", fill->to);
    + ;
  a_stream_that_does_not_exist_is_refused
    - if (!stream_exists(handle)) {
    + if (0) {
  work_of_one_device_is_refused_on_a_stream_of_another
    - stream_device(stream) != event->device
    + false
memory.c
  poison_reaches_up_to_what_is_known_again
    - next ? next->address : block_end
    + address + 64
    - next ? next->address : block_end
    + block_end
  a_failed_device_stays_failed
    - device->sticky_error = ILLEGAL_ADDRESS;
    + ;
  more_memory_than_there_is_is_refused
    - in_use(device->ordinal) + size_bytes > limit
    + false
  memory_is_used_again_and_counted
    - size_bytes += is_own ? all.at[i].size_bytes : 0;
    + ;
  memory_is_mapped_to_addresses_that_were_reserved
    - created[one->device] -= one->size_bytes;
    + ;
    - at = end_of(&all.at[i]); /*
    + if (at == address) at = end_of(&all.at[i]); /*
  a_write_to_the_first_element_does_not_end_poison
    - mark(address, next ? next->address : block_end);
    + mark(address, address + 1);
  managed_memory_is_freed_once
    - (one->kind != DEVICE && one->kind != MANAGED)
    + one->kind != DEVICE
  what_is_left_is_reported_at_the_end[memory]
    - size_bytes += memory_in_use(i);
    + ;
  what_is_left_is_reported_at_the_end[pinned]
    - all.at[i].kind == PINNED || all.at[i].kind == MANAGED ?
    + all.at[i].kind == MANAGED ?
  what_is_left_is_reported_at_the_end[managed]
    - all.at[i].kind == PINNED || all.at[i].kind == MANAGED ?
    + all.at[i].kind == PINNED ?
  the_host_cannot_read_device_memory
    - void *seen = mmap(NULL, size_bytes, PROT_NONE,
    + void *seen = mmap(NULL, size_bytes, PROT_READ,
"""
"""By file of the sources: the test that must fail, the text that is replaced, and by what."""


class Mutation(NamedTuple):
    file: str
    test: str
    text: str
    replacement: str


def mutations() -> Iterator[Mutation]:
    for of_file in re.split(r"(?m)^(?=\S)", BROKEN)[1:]:
        file, *of_tests = re.split(r"(?m)^  (?=\S)", of_file)
        for of_test in of_tests:
            test, _, changes = of_test.partition("\n")
            for change in re.findall(r"((?:    - .*\n)+)((?:    \+ .*\n)+)", changes):
                yield Mutation(file.strip(), test, *map(without_signs, change))


def without_signs(lines: str) -> str:
    return "\n".join(line[len("    - ") :] for line in lines.splitlines())


MUTATIONS = tuple(mutations())


def mutated(mutation: Mutation) -> str:
    """The file with what the mutation breaks."""
    text = (SOURCES / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.text) == 1, mutation
    return text.replace(mutation.text, mutation.replacement)


def test_each_mutation_breaks_one_place_of_the_sources():
    assert sum(len(one.text.splitlines()) for one in MUTATIONS) == BROKEN.count("\n    - ")
    for mutation in MUTATIONS:
        assert mutated(mutation)


@pytest.mark.nightly
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.test)
def test_a_broken_semantic_turns_its_test_red(mutation, tmp_path):
    sources = shutil.copytree(SOURCES, tmp_path / "sources")
    (sources / mutation.file).write_text(mutated(mutation), encoding="utf-8")
    build(sources, tmp_path)
    assert status_of(tmp_path / LIBRARY, mutation.test) == FAILED


@pytest.mark.nightly
def test_all_are_green_without_a_mutation(tmp_path):
    build(SOURCES, tmp_path)
    assert status_of(tmp_path / LIBRARY, " or ".join({one.test for one in MUTATIONS})) == 0


def status_of(library: Path, tests: str) -> int | None:
    """How pytest ends on a driver; None if it hangs."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", tests]
    environment = {**os.environ, "DLPROF_TEST_DRIVER": str(library)}
    try:
        return subprocess.run(
            [*command, str(TESTS)],
            env=environment,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return None
