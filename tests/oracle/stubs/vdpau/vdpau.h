/* The types that cudaVDPAU.h takes from VDPAU's header. */
typedef unsigned int VdpDevice, VdpVideoSurface, VdpOutputSurface, VdpFuncId, VdpStatus;
typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId function, void **pointer);
