/* The runtime wheels lack this header; its functions are judged by the types in cudaProfilerTypedefs.h. */
#include <cuda.h>
typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;
