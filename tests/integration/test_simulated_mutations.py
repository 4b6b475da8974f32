"""Each semantic of the simulated driver has a test that fails when the semantic is broken.

A mutation replaces a text of the C sources. The tests of the driver run on what is built of that.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from dlprof.simulated.build import LIBRARY, SOURCES, build

TESTS = Path(__file__).parents[1] / "unit" / "test_simulated_driver.py"
LIMIT_S = 60
FAILED = 1  # pytest's exit status; a hang or a crash is none


LEFT = "what_is_left_is_reported_at_the_end"
PEER = "a_copy_to_a_peer"


class Mutation(NamedTuple):
    """What is broken, where, how, and the test that must fail."""

    file: str
    text: str
    replacement: str
    test: str


MUTATIONS = {
    "work of a stream in order": Mutation(
        "queue.c",
        "stream->tail->next = work;",
        "work->next = stream->head->next; stream->head->next = work;",
        "a_stream_performs_its_work_in_order",
    ),
    "a kernel is asynchronous": Mutation(
        "kernels.c",
        "submit(stream, perform_kernel, launch);",
        "submit_and_wait(stream, perform_kernel, launch);",
        "a_kernel_returns_before_it_is_done",
    ),
    "legacy work runs after blocking streams": Mutation(
        "queue.c",
        "depend(work, other->last);",
        ";",
        "work_of_the_legacy_stream_runs_after_that_of_blocking_streams",
    ),
    "waiting for the legacy stream": Mutation(
        "queue.c",
        "(stream == legacy || other == legacy)",
        "false",
        "the_legacy_stream_waits_for_blocking_streams",
    ),
    "blocking work runs after the legacy stream": Mutation(
        "queue.c",
        "depend(work, legacy->last);",
        ";",
        "blocking_streams_wait_for_the_legacy_stream",
    ),
    "non-blocking streams are apart": Mutation(
        "queue.c",
        "stream->flags != NON_BLOCKING && legacy",
        "legacy",
        "a_non_blocking_stream_is_ordered_with_no_other",
    ),
    "the stream of a thread is blocking": Mutation(
        "queue.c",
        "own[device->ordinal] = new_default(device);",
        "own[device->ordinal] = stream_new(device, NON_BLOCKING, 0);",
        "the_stream_of_a_thread_is_a_blocking_one",
    ),
    "no handle is the stream of a thread": Mutation(
        "driver.c",
        "(!handle && null_is_of_thread)",
        "false",
        "no_handle_is_the_stream_of_a_thread",
    ),
    "the flag of a stream of a thread": Mutation(
        "driver.c",
        "flags & 2 ? dlsym(own, of_thread) : NULL",
        "NULL",
        "no_handle_is_the_stream_of_a_thread",
    ),
    "an event that was destroyed": Mutation(
        "driver.c",
        "!event || !event->is_there",
        "!event",
        "an_event_that_does_not_exist_is_refused",
    ),
    "waiting for the device": Mutation(
        "queue.c",
        ": other->device == device;",
        ": other->device == device && other->flags != NON_BLOCKING;",
        "the_device_is_done_when_all_streams_are",
    ),
    "asking an event": Mutation(
        "queue.c",
        "return !event->recorded || event->recorded->is_done;",
        "return true;",
        "an_event_is_reached_after_the_work_before_it",
    ),
    "waiting for an event": Mutation(
        "queue.c", "wait_for(event->recorded);", ";", "an_event_is_reached_after_the_work_before_it"
    ),
    "recording again": Mutation(
        "queue.c",
        "release(event->recorded);\n    event->recorded = mark;",
        "if (event->recorded) release(mark); else event->recorded = mark;",
        "recording_an_event_again_moves_its_mark",
    ),
    "a stream waits for an event": Mutation(
        "queue.c",
        "if (event->recorded && !event->recorded->is_done) {",
        "if (0) {",
        "a_stream_waits_for_the_place_that_an_event_marks_when_it_is_asked",
    ),
    "an event that is not recorded": Mutation(
        "driver.c",
        "event_order(event, stream);",
        "if (!event->recorded) return INVALID_HANDLE;\n    event_order(event, stream);",
        "a_stream_waits_for_the_place_that_an_event_marks_when_it_is_asked",
    ),
    "elapsed time": Mutation(
        "driver.c",
        "(event_ns(end) - event_ns(start)) / 1e6",
        "(event_ns(end) - event_ns(start)) / 1e9",
        "elapsed_time_is_between_two_marks",
    ),
    "events without timing": Mutation(
        "driver.c", "!(flags & 2)", "true", "an_event_without_timing_tells_no_time"
    ),
    "a context of each thread": Mutation(
        "driver.c",
        "static __thread struct device *stack[MOST_CONTEXTS];\nstatic __thread int depth;",
        "static struct device *stack[MOST_CONTEXTS];\nstatic int depth;",
        "a_context_belongs_to_a_thread",
    ),
    "staging": Mutation(
        "driver.c",
        "if (from_pageable && !to_pageable) {",
        "if (0) {",
        "a_copy_from_pageable_memory_has_read_it_when_it_returns",
    ),
    "a copy from pageable memory does not wait": Mutation(
        "driver.c",
        "if (to_pageable || (waits",
        "if (to_pageable || from_pageable || (waits",
        "a_copy_from_pageable_memory_has_read_it_when_it_returns",
    ),
    "a copy to pageable memory waits": Mutation(
        "driver.c",
        "if (to_pageable || (waits",
        "if ((waits",
        "a_copy_to_pageable_memory_returns_when_it_is_done",
    ),
    "a copy of pinned memory is asynchronous": Mutation(
        "driver.c",
        "return memory_at(address).kind == NOT_KNOWN; }",
        "return memory_at(address).kind != DEVICE; }",
        "a_copy_of_pinned_memory_is_asynchronous",
    ),
    "a copy without a stream waits": Mutation(
        "driver.c",
        "(waits && (to_host || from_host))",
        "false",
        "a_copy_from_pinned_memory_without_a_stream_waits",
    ),
    "registered memory is the host's": Mutation(
        "driver.c",
        "return kind == PINNED || kind == REGISTERED;",
        "return kind == PINNED;",
        "a_copy_to_memory_that_was_registered_waits",
    ),
    "poison reaches up to what is known": Mutation(
        "memory.c",
        "next ? next->address : block_end",
        "address + 64",
        "poison_reaches_up_to_what_is_known_again",
    ),
    "poison spares what is known": Mutation(
        "memory.c",
        "next ? next->address : block_end",
        "block_end",
        "poison_reaches_up_to_what_is_known_again",
    ),
    "a stream is destroyed once": Mutation(
        "driver.c",
        'if (!stream_exists(stream)) {\n        report("a stream that',
        'if (false) {\n        report("a stream that',
        "a_stream_is_destroyed_once",
    ),
    "a copy on the device is asynchronous": Mutation(
        "driver.c", "bool to_host = to_pageable", "bool to_host = true", "a_copy_on_the_device"
    ),
    "a memset is asynchronous": Mutation(
        "driver.c",
        "submit(stream, perform_fill, fill);",
        "submit_and_wait(stream, perform_fill, fill);",
        "a_memset_is_asynchronous",
    ),
    "freeing waits": Mutation(
        "driver.c",
        "device_wait(current_device());\n    return memory_free(address);",
        "return memory_free(address);",
        "freeing_memory_waits_for_the_device",
    ),
    "host functions are in order": Mutation(
        "driver.c",
        "submit(stream, call, host);",
        "call(host);",
        "a_host_function_runs_in_the_order_of_its_stream",
    ),
    "a failed device stays failed": Mutation(
        "memory.c",
        "device->sticky_error = ILLEGAL_ADDRESS;",
        ";",
        "a_failed_device_stays_failed",
    ),
    "pinned memory is the host's": Mutation(
        "driver.c",
        "bool is_host = owner.kind == PINNED ||",
        "bool is_host =",
        "an_address_tells_what_memory_it_is_in",
    ),
    "freed memory is known as freed": Mutation(
        "driver.c",
        "bool is_known = owner.kind != NOT_KNOWN && owner.kind != FREED;",
        "bool is_known = owner.kind != NOT_KNOWN;",
        "an_address_tells_what_memory_it_is_in",
    ),
    "memory has an end": Mutation(
        "memory.c",
        "in_use(device->ordinal) + size_bytes > limit",
        "false",
        "more_memory_than_there_is_is_refused",
    ),
    "memory is counted": Mutation(
        "memory.c",
        "size_bytes += is_own ? all.at[i].size_bytes : 0;",
        ";",
        "memory_is_used_again_and_counted",
    ),
    "unmapped memory is given back": Mutation(
        "memory.c",
        "created[one->device] -= one->size_bytes;",
        ";",
        "memory_is_mapped_to_addresses_that_were_reserved",
    ),
    "parts of memory lie side by side": Mutation(
        "memory.c",
        "at = end_of(&all.at[i]); /*",
        "if (at == address) at = end_of(&all.at[i]); /*",
        "memory_is_mapped_to_addresses_that_were_reserved",
    ),
    "a kernel poisons its arrays": Mutation(
        "kernels.c",
        "poison_place(launch->pointers[i]);",
        ";",
        "a_kernel_poisons_what_its_arguments_point_to",
    ),
    "a kernel poisons no other array": Mutation(
        "kernels.c",
        "launch->is_opaque = !count;",
        "launch->is_opaque = true;",
        "a_kernel_of_unknown_parameters_poisons_what_its_arguments_point_to",
    ),
    "an opaque kernel poisons the device": Mutation(
        "kernels.c",
        "poison_all(launch->device);",
        ";",
        "a_kernel_whose_arguments_cannot_be_read_poisons_the_device",
    ),
    "poison is copied": Mutation(
        "driver.c", " poison(to, size_bytes);", ";", "poison_goes_where_it_is_copied"
    ),
    "poison is counted": Mutation(
        "driver.c", "poison_reached_host();", ";", "poison_that_reaches_the_host_is_counted"
    ),
    "poison outlasts one element": Mutation(
        "memory.c",
        "mark(address, next ? next->address : block_end);",
        "mark(address, address + 1);",
        "a_write_to_the_first_element_does_not_end_poison",
    ),
    "poison ends": Mutation(
        "driver.c",
        "unpoison(fill->to, size_bytes, 0);",
        ";",
        "poison_goes_where_it_is_copied",
    ),
    "copy kernels copy": Mutation(
        "kernels.c",
        "launch->copies = true;",
        ";",
        "a_copy_kernel_of_cupy_is_performed_by_its_name",
    ),
    "kernels take their time": Mutation(
        "kernels.c",
        "launch->duration_ns = kernel_ns(kernel->name);",
        ";",
        "each_kernel_takes_the_time_that_is_set_for_its_name",
    ),
    "peer access is switched once": Mutation(
        "driver.c",
        "has_peer[here][there] = is_wanted;",
        ";",
        "the_access_to_a_peer_is_switched_on_once",
    ),
    "devices reach each other": Mutation(
        "driver.c",
        "*can = device != peer &&",
        "*can = false &&",
        "each_device_can_reach_the_other",
    ),
    "a copy to a peer copies": Mutation(
        "driver.c",
        "return queue_copy(to, from, size_bytes, handle, false);",
        "return SUCCESS;",
        f"{PEER}_is_asynchronous",
    ),
    "a copy to a peer is asynchronous": Mutation(
        "driver.c",
        "return queue_copy(to, from, size_bytes, handle, false);",
        "int status = queue_copy(to, from, size_bytes, handle, false);\n"
        "    return stream_wait(stream_of(handle)), status;",
        f"{PEER}_is_asynchronous",
    ),
    "a copy to a peer without a stream copies": Mutation(
        "driver.c",
        "int status = queue_copy(to, from, size_bytes, NULL, true);",
        "int status = SUCCESS;",
        f"{PEER}_without_a_stream",
    ),
    "a copy to a peer runs after work of this device": Mutation(
        "queue.c",
        "if (other->device == *devices) {",
        "if (other->device == *devices && other->device != place->device) {",
        f"{PEER}_without_a_stream_is_ordered_with_all_work_of_both[here]",
    ),
    "a copy to a peer runs after work of that device": Mutation(
        "queue.c",
        "if (other->device == *devices) {",
        "if (other->device == place->device) {",
        f"{PEER}_without_a_stream_is_ordered_with_all_work_of_both[there]",
    ),
    "later work runs after a copy to a peer": Mutation(
        "queue.c",
        "depend(work, stream->device->barrier);",
        ";",
        f"{PEER}_without_a_stream",
    ),
    "giving back pinned memory waits": Mutation(
        "driver.c",
        "device_wait(current_device());\n    return host_forget(address, PINNED);",
        "return host_forget(address, PINNED);",
        "giving_back_memory_of_the_host_waits_for_the_device[False]",
    ),
    "giving back registered memory waits": Mutation(
        "driver.c",
        "device_wait(current_device());\n    return host_forget(address, REGISTERED);",
        "return host_forget(address, REGISTERED);",
        "giving_back_memory_of_the_host_waits_for_the_device[True]",
    ),
    "managed memory can be freed": Mutation(
        "memory.c",
        "(one->kind != DEVICE && one->kind != MANAGED)",
        "one->kind != DEVICE",
        "managed_memory_is_freed_once",
    ),
    "the pointer of the host": Mutation(
        "driver.c",
        "is_readable ? address : 0; applies = is_readable;",
        "0; applies = is_readable;",
        "memory_that_the_host_can_reach",
    ),
    "the host does not reach device memory": Mutation(
        "driver.c",
        "is_readable ? address : 0; applies = is_readable;",
        "address;",
        "memory_that_the_host_can_reach",
    ),
    "registered memory tells that it is the host's": Mutation(
        "driver.c",
        "bool is_host = owner.kind == PINNED || owner.kind == REGISTERED;",
        "bool is_host = owner.kind == PINNED;",
        "memory_that_the_host_can_reach",
    ),
    "a copy of freed memory": Mutation(
        "driver.c",
        'misuse(copy->device, "a copy of memory that is not allocated", target ? from : to);',
        ";",
        "a_use_after_free_is_reported[copy]",
    ),
    "a memset of freed memory": Mutation(
        "driver.c",
        'misuse(fill->device, "a memset of memory that is not allocated", fill->to);',
        ";",
        "a_use_after_free_is_reported[memset]",
    ),
    "streams that do not exist": Mutation(
        "driver.c",
        "if (!stream_exists(handle)) {",
        "if (0) {",
        "a_stream_that_does_not_exist_is_refused",
    ),
    "kernels on a stream of another device": Mutation(
        "kernels.c",
        "stream_device(stream) != current_device()",
        "false",
        "work_of_one_device_is_refused_on_a_stream_of_another",
    ),
    "events on a stream of another device": Mutation(
        "driver.c",
        "stream_device(stream) != event->device",
        "false",
        "work_of_one_device_is_refused_on_a_stream_of_another",
    ),
    "delays show each race": Mutation(
        "queue.c",
        "if (!longest_ns || has_ready(stream, true)) {",
        "if (1) {",
        "only_a_path_without_order_races_and_it_always_does",
    ),
    "order holds with delays": Mutation(
        "queue.c",
        "if (event->recorded && !event->recorded->is_done) {",
        "if (0) {",
        "only_a_path_without_order_races_and_it_always_does",
    ),
    "leaks of memory": Mutation(
        "memory.c", "size_bytes += memory_in_use(i);", ";", f"{LEFT}[memory]"
    ),
    "leaks of pinned memory": Mutation(
        "memory.c",
        "all.at[i].kind == PINNED || all.at[i].kind == MANAGED ?",
        "all.at[i].kind == MANAGED ?",
        f"{LEFT}[pinned]",
    ),
    "leaks of managed memory": Mutation(
        "memory.c",
        "all.at[i].kind == PINNED || all.at[i].kind == MANAGED ?",
        "all.at[i].kind == PINNED ?",
        f"{LEFT}[managed]",
    ),
    "leaks of streams": Mutation(
        "queue.c",
        "count += !stream->is_default && !stream->is_destroyed;",
        ";",
        f"{LEFT}[streams]",
    ),
    "leaks of events": Mutation("queue.c", "event_count++;", ";", f"{LEFT}[events]"),
    "use after free": Mutation(
        "kernels.c",
        "if (kind == FREED && is_argument && !at) {",
        "if (0) {",
        "a_use_after_free_is_reported[kernel]",
    ),
    "the host reads device memory": Mutation(
        "memory.c",
        "void *seen = mmap(NULL, size_bytes, PROT_NONE,",
        "void *seen = mmap(NULL, size_bytes, PROT_READ,",
        "the_host_cannot_read_device_memory",
    ),
}


def broken(mutation: Mutation) -> str:
    """The file with what the mutation breaks."""
    text = (SOURCES / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.text) == 1, mutation
    return text.replace(mutation.text, mutation.replacement)


def test_each_mutation_breaks_one_place_of_the_sources():
    for mutation in MUTATIONS.values():
        assert broken(mutation)


@pytest.mark.nightly
@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
def test_a_broken_semantic_turns_its_test_red(mutation, tmp_path):
    sources = shutil.copytree(SOURCES, tmp_path / "sources")
    (sources / mutation.file).write_text(broken(mutation), encoding="utf-8")
    build(sources, tmp_path)
    assert status_of(tmp_path / LIBRARY, mutation.test) == FAILED


@pytest.mark.nightly
def test_all_are_green_without_a_mutation(tmp_path):
    build(SOURCES, tmp_path)
    assert status_of(tmp_path / LIBRARY, " or ".join({one.test for one in MUTATIONS.values()})) == 0


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
