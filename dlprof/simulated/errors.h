/* Results of driver calls: number, name and words, as CUDA's documentation has them. */

#ifndef DLPROF_ERRORS_H
#define DLPROF_ERRORS_H

#define RESULTS(each)                                                                            \
    each(SUCCESS, 0, "CUDA_SUCCESS", "no error")                                                 \
    each(INVALID_VALUE, 1, "CUDA_ERROR_INVALID_VALUE", "invalid argument")                       \
    each(OUT_OF_MEMORY, 2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory")                          \
    each(NOT_INITIALIZED, 3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error")               \
    each(NO_DEVICE, 100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected")           \
    each(INVALID_DEVICE, 101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal")             \
    each(INVALID_CONTEXT, 201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context")           \
    each(PEER_NOT_ENABLED, 705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access not enabled") \
    each(PEER_ENABLED, 704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is enabled")  \
    each(ALREADY_REGISTERED, 712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",                   \
         "part or all of the requested memory range is already mapped")                          \
    each(NOT_REGISTERED, 713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",                           \
         "pointer does not correspond to a registered memory region")                            \
    each(INVALID_HANDLE, 400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle")            \
    each(NOT_FOUND, 500, "CUDA_ERROR_NOT_FOUND", "named symbol not found")                       \
    each(NOT_READY, 600, "CUDA_ERROR_NOT_READY", "device not ready")                             \
    each(ILLEGAL_ADDRESS, 700, "CUDA_ERROR_ILLEGAL_ADDRESS",                                     \
         "an illegal memory access was encountered")                                             \
    each(NOT_SUPPORTED, 801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported")

#define NUMBER(name, number, text, words) name = number,
enum result { RESULTS(NUMBER) };
#undef NUMBER

#endif
