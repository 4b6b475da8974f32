"""Does a conversion from TensorFlow wait for queued work, executed asynchronously? No dlprof.

The job is a loop in a ``tf.function`` whose result the conversion reads; each call is timed alone,
then behind the job, and compared with what the job takes when it is waited for.
"""

import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy
import tensorflow as tf

WAYS = {
    "numpy.asarray(x)": numpy.asarray,
    "numpy.array(x)": numpy.array,
    "numpy.asarray(memoryview(x))": lambda x: numpy.asarray(memoryview(x)),
    "numpy.from_dlpack(x)": numpy.from_dlpack,
    "x.numpy()": lambda x: x.numpy(),
}
REPEATS = 5
ARRAY = tf.ones((1024, 1024))


@tf.function(autograph=False)
def job(x, work):
    z, _ = tf.while_loop(
        lambda _, i: i < work, lambda z, i: (tf.cos(z), i + 1), (tf.range(8192.0), 0)
    )
    return tf.where(z[0] > 4, tf.zeros_like(x), x)


def finished(work):
    job(ARRAY, work)[0, 0].numpy()


def seconds(call, *arguments):
    begun = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - begun, result


def shares(convert):
    """Of the time of a job: what it takes to queue it, and what a call takes behind it."""
    work = tf.constant(2000)
    for _ in range(REPEATS):
        whole, _ = seconds(finished, work)
        queueing, queued = seconds(job, ARRAY, work)
        call, _ = seconds(convert, queued)
        yield queueing / whole, call / whole


for synchronous in (True, False):
    tf.config.experimental.set_synchronous_execution(synchronous)
    finished(tf.constant(1))
    print("synchronous" if synchronous else "asynchronous")
    for way, convert in WAYS.items():
        convert(tf.identity(ARRAY))
        queueing, behind = (
            statistics.median(found) for found in zip(*shares(convert), strict=True)
        )
        print(f"  {way:30} queueing {queueing:5.2f} of a job, the call {behind:5.2f}")
print(sys.version.split()[0], "numpy", numpy.__version__, "tensorflow", tf.__version__)
