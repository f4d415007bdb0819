//! The names of NVML: every function that `libnvidia-ml.so.1` of release 12.9 to 13.5 exports, one row each.
//!
//! A row reads
//! ```text
//! (handler) nvmlName(argument: Type, …);
//! ```
//! `handler` is `forward` (the twin jumps on to the real library) or `module::function`, what the twin in
//! `shim/nvml/src` answers itself. A row without arguments is either a function that takes none or one
//! that neither the twin nor the stand-in looks at: there it is only a name. All return `nvmlReturn_t`,
//! except [`ERROR_STRING`], which therefore has no row.
//!
//! Adding a function = a row here, and an implementation in `simgpu/src/nvml` if the stand-in has it.
//! Next files of the walk: `shim/nvml/src/lib.rs` and `simgpu/src/nvml/mod.rs`, which expand it.

use crate::names::{Names, length};

/// The one function that returns a text instead of a status.
pub const ERROR_STRING: &str = "nvmlErrorString";

/// Expands `$each! { row; row; … }` with every row of the table.
#[macro_export]
macro_rules! nvml_functions {
    ($each:ident) => {
        $each! {
            (forward) nvmlComputeInstanceDestroy();
            (forward) nvmlComputeInstanceGetInfo();
            (forward) nvmlComputeInstanceGetInfo_v2();
            (forward) nvmlDeviceClearAccountingPids();
            (forward) nvmlDeviceClearCpuAffinity();
            (forward) nvmlDeviceClearEccErrorCounts();
            (forward) nvmlDeviceClearFieldValues();
            (forward) nvmlDeviceCreateGpuInstance();
            (forward) nvmlDeviceCreateGpuInstanceWithPlacement();
            (forward) nvmlDeviceDiscoverGpus();
            (forward) nvmlDeviceFreezeNvLinkUtilizationCounter();
            (forward) nvmlDeviceGetAPIRestriction();
            (forward) nvmlDeviceGetAccountingBufferSize(device: nvmlDevice_t, bufferSize: *mut c_uint);
            (forward) nvmlDeviceGetAccountingMode(device: nvmlDevice_t, mode: *mut nvmlEnableState_t);
            (accounting::pids) nvmlDeviceGetAccountingPids(device: nvmlDevice_t, count: *mut c_uint, pids: *mut c_uint);
            (accounting::stats) nvmlDeviceGetAccountingStats(device: nvmlDevice_t, pid: c_uint, stats: *mut nvmlAccountingStats_t);
            (accounting::stats_v2) nvmlDeviceGetAccountingStats_v2(device: nvmlDevice_t, stats: *mut nvmlAccountingStats_v2_t);
            (forward) nvmlDeviceGetActiveVgpus();
            (forward) nvmlDeviceGetAdaptiveClockInfoStatus();
            (forward) nvmlDeviceGetAdaptiveTgpModeInfo_v1();
            (forward) nvmlDeviceGetAddressingMode();
            (forward) nvmlDeviceGetApplicationsClock(device: nvmlDevice_t, clockType: nvmlClockType_t, clockMHz: *mut c_uint);
            (forward) nvmlDeviceGetArchitecture(device: nvmlDevice_t, arch: *mut nvmlDeviceArchitecture_t);
            (forward) nvmlDeviceGetAttributes();
            (forward) nvmlDeviceGetAttributes_v2();
            (forward) nvmlDeviceGetAutoBoostedClocksEnabled();
            (forward) nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, bar1Memory: *mut nvmlBAR1Memory_t);
            (forward) nvmlDeviceGetBBXTimeData_v1();
            (forward) nvmlDeviceGetBankRemapperStatus_v1();
            (forward) nvmlDeviceGetBoardId(device: nvmlDevice_t, boardId: *mut c_uint);
            (forward) nvmlDeviceGetBoardPartNumber();
            (forward) nvmlDeviceGetBrand(device: nvmlDevice_t, kind: *mut nvmlBrandType_t);
            (forward) nvmlDeviceGetBridgeChipInfo();
            (forward) nvmlDeviceGetBusType(device: nvmlDevice_t, kind: *mut nvmlBusType_t);
            (forward) nvmlDeviceGetC2cModeInfoV();
            (forward) nvmlDeviceGetCapabilities();
            (forward) nvmlDeviceGetClkMonStatus();
            (forward) nvmlDeviceGetClock(device: nvmlDevice_t, clockType: nvmlClockType_t, clockId: nvmlClockId_t, clockMHz: *mut c_uint);
            (forward) nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: nvmlClockType_t, clock: *mut c_uint);
            (forward) nvmlDeviceGetClockOffsets();
            (forward) nvmlDeviceGetComputeInstanceId();
            (forward) nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: *mut nvmlComputeMode_t);
            (processes::running_v1) nvmlDeviceGetComputeRunningProcesses(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_v1_t);
            (processes::running) nvmlDeviceGetComputeRunningProcesses_v2(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_v2_t);
            (processes::running) nvmlDeviceGetComputeRunningProcesses_v3(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_t);
            (forward) nvmlDeviceGetConfComputeGpuAttestationReport();
            (forward) nvmlDeviceGetConfComputeGpuCertificate();
            (forward) nvmlDeviceGetConfComputeMemSizeInfo();
            (forward) nvmlDeviceGetConfComputeProtectedMemoryUsage();
            (forward) nvmlDeviceGetCoolerInfo();
            (forward) nvmlDeviceGetCount(deviceCount: *mut c_uint);
            (forward) nvmlDeviceGetCount_v2(deviceCount: *mut c_uint);
            (forward) nvmlDeviceGetCpuAffinity();
            (forward) nvmlDeviceGetCpuAffinityWithinScope();
            (forward) nvmlDeviceGetCreatableVgpus();
            (forward) nvmlDeviceGetCudaComputeCapability(device: nvmlDevice_t, major: *mut c_int, minor: *mut c_int);
            (forward) nvmlDeviceGetCurrPcieLinkGeneration(device: nvmlDevice_t, currLinkGen: *mut c_uint);
            (forward) nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, currLinkWidth: *mut c_uint);
            (forward) nvmlDeviceGetCurrentClockFreqs();
            (forward) nvmlDeviceGetCurrentClocksEventReasons(device: nvmlDevice_t, clocksEventReasons: *mut c_ulonglong);
            (forward) nvmlDeviceGetCurrentClocksThrottleReasons(device: nvmlDevice_t, clocksThrottleReasons: *mut c_ulonglong);
            (forward) nvmlDeviceGetDecoderUtilization(device: nvmlDevice_t, utilization: *mut c_uint, samplingPeriodUs: *mut c_uint);
            (forward) nvmlDeviceGetDefaultApplicationsClock(device: nvmlDevice_t, clockType: nvmlClockType_t, clockMHz: *mut c_uint);
            (forward) nvmlDeviceGetDefaultEccMode();
            (forward) nvmlDeviceGetDetailedEccErrors();
            (forward) nvmlDeviceGetDeviceHandleFromMigDeviceHandle(migDevice: nvmlDevice_t, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetDisplayActive(device: nvmlDevice_t, isActive: *mut nvmlEnableState_t);
            (forward) nvmlDeviceGetDisplayMode(device: nvmlDevice_t, display: *mut nvmlEnableState_t);
            (forward) nvmlDeviceGetDramEncryptionMode();
            (forward) nvmlDeviceGetDriverModel();
            (forward) nvmlDeviceGetDriverModel_v2();
            (forward) nvmlDeviceGetDynamicPstatesInfo();
            (forward) nvmlDeviceGetEccMode();
            (forward) nvmlDeviceGetEncoderCapacity();
            (forward) nvmlDeviceGetEncoderSessions();
            (forward) nvmlDeviceGetEncoderStats();
            (forward) nvmlDeviceGetEncoderUtilization(device: nvmlDevice_t, utilization: *mut c_uint, samplingPeriodUs: *mut c_uint);
            (forward) nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, limit: *mut c_uint);
            (forward) nvmlDeviceGetFBCSessions();
            (forward) nvmlDeviceGetFBCStats();
            (forward) nvmlDeviceGetFanControlPolicy_v2();
            (forward) nvmlDeviceGetFanSpeed();
            (forward) nvmlDeviceGetFanSpeed_v2();
            (forward) nvmlDeviceGetFanSpeedRPM();
            (forward) nvmlDeviceGetFieldValues(device: nvmlDevice_t, valuesCount: c_int, values: *mut nvmlFieldValue_t);
            (forward) nvmlDeviceGetGpcClkMinMaxVfOffset();
            (forward) nvmlDeviceGetGpcClkVfOffset();
            (forward) nvmlDeviceGetGpuFabricInfo();
            (forward) nvmlDeviceGetGpuFabricInfo_v4();
            (forward) nvmlDeviceGetGpuFabricInfoV();
            (forward) nvmlDeviceGetGpuInstanceById();
            (forward) nvmlDeviceGetGpuInstanceId();
            (forward) nvmlDeviceGetGpuInstancePossiblePlacements();
            (forward) nvmlDeviceGetGpuInstancePossiblePlacements_v2();
            (forward) nvmlDeviceGetGpuInstanceProfileInfo();
            (forward) nvmlDeviceGetGpuInstanceProfileInfoByIdV();
            (forward) nvmlDeviceGetGpuInstanceProfileInfoV();
            (forward) nvmlDeviceGetGpuInstanceRemainingCapacity();
            (forward) nvmlDeviceGetGpuInstances();
            (forward) nvmlDeviceGetGpuMaxPcieLinkGeneration(device: nvmlDevice_t, maxLinkGenDevice: *mut c_uint);
            (forward) nvmlDeviceGetGpuOperationMode();
            (forward) nvmlDeviceGetGpuUptime_v1();
            (processes::others_v1) nvmlDeviceGetGraphicsRunningProcesses(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_v1_t);
            (processes::others) nvmlDeviceGetGraphicsRunningProcesses_v2(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_v2_t);
            (processes::others) nvmlDeviceGetGraphicsRunningProcesses_v3(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_t);
            (forward) nvmlDeviceGetGridLicensableFeatures();
            (forward) nvmlDeviceGetGridLicensableFeatures_v2();
            (forward) nvmlDeviceGetGridLicensableFeatures_v3();
            (forward) nvmlDeviceGetGridLicensableFeatures_v4();
            (forward) nvmlDeviceGetGspFirmwareMode();
            (forward) nvmlDeviceGetGspFirmwareVersion();
            (forward) nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetHandleByPciBusId(pciBusId: *const c_char, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetHandleByPciBusId_v2(pciBusId: *const c_char, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetHandleBySerial(serial: *const c_char, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetHandleByUUIDV();
            (forward) nvmlDeviceGetHostVgpuMode();
            (forward) nvmlDeviceGetHostname_v1();
            (forward) nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint);
            (forward) nvmlDeviceGetInforomConfigurationChecksum();
            (forward) nvmlDeviceGetInforomImageVersion();
            (forward) nvmlDeviceGetInforomVersion();
            (forward) nvmlDeviceGetIrqNum();
            (forward) nvmlDeviceGetJpgUtilization(device: nvmlDevice_t, utilization: *mut c_uint, samplingPeriodUs: *mut c_uint);
            (forward) nvmlDeviceGetLastBBXFlushTime();
            (processes::others_v1) nvmlDeviceGetMPSComputeRunningProcesses(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_v1_t);
            (processes::others) nvmlDeviceGetMPSComputeRunningProcesses_v2(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_v2_t);
            (processes::others) nvmlDeviceGetMPSComputeRunningProcesses_v3(device: nvmlDevice_t, infoCount: *mut c_uint, infos: *mut nvmlProcessInfo_t);
            (forward) nvmlDeviceGetMarginTemperature();
            (forward) nvmlDeviceGetMaxClockInfo(device: nvmlDevice_t, kind: nvmlClockType_t, clock: *mut c_uint);
            (forward) nvmlDeviceGetMaxCustomerBoostClock();
            (forward) nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut c_uint);
            (forward) nvmlDeviceGetMaxPcieLinkGeneration(device: nvmlDevice_t, maxLinkGen: *mut c_uint);
            (forward) nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, maxLinkWidth: *mut c_uint);
            (forward) nvmlDeviceGetMemClkMinMaxVfOffset();
            (forward) nvmlDeviceGetMemClkVfOffset();
            (forward) nvmlDeviceGetMemoryAffinity();
            (forward) nvmlDeviceGetMemoryBusWidth(device: nvmlDevice_t, busWidth: *mut c_uint);
            (forward) nvmlDeviceGetMemoryErrorCounter();
            (memory::total) nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t);
            (memory::total_v2) nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t);
            (forward) nvmlDeviceGetMemoryLimits_v1();
            (forward) nvmlDeviceGetMigDeviceHandleByIndex(device: nvmlDevice_t, index: c_uint, migDevice: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetMigMode(device: nvmlDevice_t, currentMode: *mut c_uint, pendingMode: *mut c_uint);
            (forward) nvmlDeviceGetMinMaxClockOfPState();
            (forward) nvmlDeviceGetMinMaxFanSpeed();
            (forward) nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minorNumber: *mut c_uint);
            (forward) nvmlDeviceGetModuleId(device: nvmlDevice_t, moduleId: *mut c_uint);
            (forward) nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multiGpuBool: *mut c_uint);
            (forward) nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint);
            (forward) nvmlDeviceGetNumFans();
            (forward) nvmlDeviceGetNumGpuCores();
            (forward) nvmlDeviceGetNumaNodeId(device: nvmlDevice_t, node: *mut c_uint);
            (forward) nvmlDeviceGetNvLinkCapability(device: nvmlDevice_t, link: c_uint, capability: nvmlNvLinkCapability_t, capResult: *mut c_uint);
            (forward) nvmlDeviceGetNvLinkErrorCounter();
            (forward) nvmlDeviceGetNvLinkInfo();
            (forward) nvmlDeviceGetNvLinkInfo_v3();
            (forward) nvmlDeviceGetNvLinkRemoteDeviceType();
            (forward) nvmlDeviceGetNvLinkRemotePciInfo(device: nvmlDevice_t, link: c_uint, pci: *mut nvmlPciInfo_t);
            (forward) nvmlDeviceGetNvLinkRemotePciInfo_v2(device: nvmlDevice_t, link: c_uint, pci: *mut nvmlPciInfo_t);
            (forward) nvmlDeviceGetNvLinkState(device: nvmlDevice_t, link: c_uint, isActive: *mut nvmlEnableState_t);
            (forward) nvmlDeviceGetNvLinkTelemetrySamples_v1();
            (forward) nvmlDeviceGetNvLinkUtilizationControl();
            (forward) nvmlDeviceGetNvLinkUtilizationCounter();
            (forward) nvmlDeviceGetNvLinkVersion(device: nvmlDevice_t, link: c_uint, version: *mut c_uint);
            (forward) nvmlDeviceGetNvlinkBwMode();
            (forward) nvmlDeviceGetNvlinkNvlePrivateInfo_v1();
            (forward) nvmlDeviceGetNvlinkRemapTableInfo_v1();
            (forward) nvmlDeviceGetNvlinkSupportedBwModes();
            (forward) nvmlDeviceGetOfaUtilization(device: nvmlDevice_t, utilization: *mut c_uint, samplingPeriodUs: *mut c_uint);
            (forward) nvmlDeviceGetP2PStatus(device1: nvmlDevice_t, device2: nvmlDevice_t, p2pIndex: nvmlGpuP2PCapsIndex_t, p2pStatus: *mut nvmlGpuP2PStatus_t);
            (forward) nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t);
            (forward) nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t);
            (forward) nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t);
            (forward) nvmlDeviceGetPciInfoExt(device: nvmlDevice_t, pci: *mut nvmlPciInfoExt_t);
            (forward) nvmlDeviceGetPcieLinkMaxSpeed();
            (forward) nvmlDeviceGetPcieReplayCounter(device: nvmlDevice_t, value: *mut c_uint);
            (forward) nvmlDeviceGetPcieSpeed();
            (forward) nvmlDeviceGetPcieThroughput(device: nvmlDevice_t, counter: nvmlPcieUtilCounter_t, value: *mut c_uint);
            (forward) nvmlDeviceGetPdi();
            (forward) nvmlDeviceGetPerformanceModes();
            (forward) nvmlDeviceGetPerformanceState(device: nvmlDevice_t, pState: *mut nvmlPstates_t);
            (forward) nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: *mut nvmlEnableState_t);
            (forward) nvmlDeviceGetPgpuMetadataString();
            (forward) nvmlDeviceGetPlatformInfo();
            (forward) nvmlDeviceGetPowerManagementDefaultLimit(device: nvmlDevice_t, defaultLimit: *mut c_uint);
            (forward) nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, limit: *mut c_uint);
            (forward) nvmlDeviceGetPowerManagementLimitConstraints(device: nvmlDevice_t, minLimit: *mut c_uint, maxLimit: *mut c_uint);
            (forward) nvmlDeviceGetPowerManagementMode(device: nvmlDevice_t, mode: *mut nvmlEnableState_t);
            (forward) nvmlDeviceGetPowerMizerMode_v1();
            (forward) nvmlDeviceGetPowerSource();
            (forward) nvmlDeviceGetPowerState(device: nvmlDevice_t, pState: *mut nvmlPstates_t);
            (forward) nvmlDeviceGetPowerUsage(device: nvmlDevice_t, power: *mut c_uint);
            (utilization::samples) nvmlDeviceGetProcessUtilization(device: nvmlDevice_t, utilization: *mut nvmlProcessUtilizationSample_t, processSamplesCount: *mut c_uint, lastSeenTimeStamp: c_ulonglong);
            (utilization::infos) nvmlDeviceGetProcessesUtilizationInfo(device: nvmlDevice_t, procesesUtilInfo: *mut nvmlProcessesUtilizationInfo_t);
            (forward) nvmlDeviceGetRemappedRows();
            (forward) nvmlDeviceGetRemappedRows_v2();
            (forward) nvmlDeviceGetRepairStatus();
            (forward) nvmlDeviceGetRetiredPages();
            (forward) nvmlDeviceGetRetiredPages_v2();
            (forward) nvmlDeviceGetRetiredPagesPendingStatus();
            (forward) nvmlDeviceGetRowRemapperHistogram();
            (processes::details) nvmlDeviceGetRunningProcessDetailList(device: nvmlDevice_t, plist: *mut nvmlProcessDetailList_t);
            (forward) nvmlDeviceGetSamples();
            (forward) nvmlDeviceGetSerial(device: nvmlDevice_t, serial: *mut c_char, length: c_uint);
            (forward) nvmlDeviceGetSramEccErrorStatus();
            (forward) nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts();
            (forward) nvmlDeviceGetSupportedClocksEventReasons(device: nvmlDevice_t, supportedClocksEventReasons: *mut c_ulonglong);
            (forward) nvmlDeviceGetSupportedClocksThrottleReasons(device: nvmlDevice_t, supportedClocksThrottleReasons: *mut c_ulonglong);
            (forward) nvmlDeviceGetSupportedEventTypes();
            (forward) nvmlDeviceGetSupportedGraphicsClocks();
            (forward) nvmlDeviceGetSupportedMemoryClocks();
            (forward) nvmlDeviceGetSupportedPerformanceStates();
            (forward) nvmlDeviceGetSupportedVgpus();
            (forward) nvmlDeviceGetTargetFanSpeed();
            (forward) nvmlDeviceGetTemperature(device: nvmlDevice_t, sensorType: nvmlTemperatureSensors_t, temp: *mut c_uint);
            (forward) nvmlDeviceGetTemperatureThreshold(device: nvmlDevice_t, thresholdType: nvmlTemperatureThresholds_t, temp: *mut c_uint);
            (forward) nvmlDeviceGetTemperatureV(device: nvmlDevice_t, temperature: *mut nvmlTemperature_t);
            (forward) nvmlDeviceGetThermalSettings();
            (forward) nvmlDeviceGetTopologyCommonAncestor(device1: nvmlDevice_t, device2: nvmlDevice_t, pathInfo: *mut nvmlGpuTopologyLevel_t);
            (forward) nvmlDeviceGetTopologyNearestGpus(device: nvmlDevice_t, level: nvmlGpuTopologyLevel_t, count: *mut c_uint, deviceArray: *mut nvmlDevice_t);
            (forward) nvmlDeviceGetTotalEccErrors();
            (forward) nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, energy: *mut c_ulonglong);
            (forward) nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint);
            (forward) nvmlDeviceGetUnrepairableMemoryFlag_v1();
            (forward) nvmlDeviceGetUtilizationRates(device: nvmlDevice_t, utilization: *mut nvmlUtilization_t);
            (forward) nvmlDeviceGetVbiosVersion(device: nvmlDevice_t, version: *mut c_char, length: c_uint);
            (forward) nvmlDeviceGetVgpuCapabilities();
            (forward) nvmlDeviceGetVgpuHeterogeneousMode();
            (forward) nvmlDeviceGetVgpuInstancesUtilizationInfo();
            (forward) nvmlDeviceGetVgpuMetadata();
            (forward) nvmlDeviceGetVgpuProcessUtilization();
            (forward) nvmlDeviceGetVgpuProcessesUtilizationInfo();
            (forward) nvmlDeviceGetVgpuSchedulerCapabilities();
            (forward) nvmlDeviceGetVgpuSchedulerLog();
            (forward) nvmlDeviceGetVgpuSchedulerLog_v2();
            (forward) nvmlDeviceGetVgpuSchedulerState();
            (forward) nvmlDeviceGetVgpuSchedulerState_v2();
            (forward) nvmlDeviceGetVgpuTypeCreatablePlacements();
            (forward) nvmlDeviceGetVgpuTypeSupportedPlacements();
            (forward) nvmlDeviceGetVgpuUtilization();
            (forward) nvmlDeviceGetViolationStatus();
            (forward) nvmlDeviceGetVirtualizationMode(device: nvmlDevice_t, pVirtualMode: *mut nvmlGpuVirtualizationMode_t);
            (forward) nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, isMigDevice: *mut c_uint);
            (forward) nvmlDeviceLockNvlinkRemapTable_v1();
            (forward) nvmlDeviceModifyDrainState();
            (forward) nvmlDeviceOnSameBoard(device1: nvmlDevice_t, device2: nvmlDevice_t, onSameBoard: *mut c_int);
            (forward) nvmlDevicePerfMetricsGetSamples_v1();
            (forward) nvmlDevicePowerSmoothingActivatePresetProfile();
            (forward) nvmlDevicePowerSmoothingSetState();
            (forward) nvmlDevicePowerSmoothingUpdatePresetProfileParam();
            (forward) nvmlDeviceQueryDrainState();
            (forward) nvmlDeviceReadPRMCounters_v1();
            (forward) nvmlDeviceReadWritePRM_v1();
            (forward) nvmlDeviceRegisterEvents();
            (forward) nvmlDeviceRemoveGpu();
            (forward) nvmlDeviceRemoveGpu_v2();
            (forward) nvmlDeviceResetApplicationsClocks();
            (forward) nvmlDeviceResetGpuLockedClocks();
            (forward) nvmlDeviceResetMemoryLockedClocks();
            (forward) nvmlDeviceResetNvLinkErrorCounters();
            (forward) nvmlDeviceResetNvLinkUtilizationCounter();
            (forward) nvmlDeviceSetAPIRestriction();
            (forward) nvmlDeviceSetAccountingMode();
            (forward) nvmlDeviceSetAdaptiveTgpMode_v1();
            (forward) nvmlDeviceSetApplicationsClocks();
            (forward) nvmlDeviceSetAutoBoostedClocksEnabled();
            (forward) nvmlDeviceSetClockOffsets();
            (forward) nvmlDeviceSetComputeMode();
            (forward) nvmlDeviceSetConfComputeUnprotectedMemSize();
            (forward) nvmlDeviceSetCpuAffinity();
            (forward) nvmlDeviceSetDefaultAutoBoostedClocksEnabled();
            (forward) nvmlDeviceSetDefaultFanSpeed_v2();
            (forward) nvmlDeviceSetDramEncryptionMode();
            (forward) nvmlDeviceSetDriverModel();
            (forward) nvmlDeviceSetEccMode();
            (forward) nvmlDeviceSetFanControlPolicy();
            (forward) nvmlDeviceSetFanSpeed_v2();
            (forward) nvmlDeviceSetGpcClkVfOffset();
            (forward) nvmlDeviceSetGpuLockedClocks();
            (forward) nvmlDeviceSetGpuOperationMode();
            (forward) nvmlDeviceSetHostname_v1();
            (forward) nvmlDeviceSetMemClkVfOffset();
            (forward) nvmlDeviceSetMemoryLimits_v1();
            (forward) nvmlDeviceSetMemoryLockedClocks();
            (forward) nvmlDeviceSetMigMode();
            (forward) nvmlDeviceSetNvLinkDeviceLowPowerThreshold();
            (forward) nvmlDeviceSetNvLinkUtilizationControl();
            (forward) nvmlDeviceSetNvlinkBwMode();
            (forward) nvmlDeviceSetNvlinkBwModeAsync_v1();
            (forward) nvmlDeviceSetNvlinkNvleReady_v1();
            (forward) nvmlDeviceSetPersistenceMode();
            (forward) nvmlDeviceSetPowerManagementLimit();
            (forward) nvmlDeviceSetPowerManagementLimit_v2();
            (forward) nvmlDeviceSetPowerMizerMode_v1();
            (forward) nvmlDeviceSetRusdSettings_v1();
            (forward) nvmlDeviceSetTemperatureThreshold();
            (forward) nvmlDeviceSetVgpuCapabilities();
            (forward) nvmlDeviceSetVgpuHeterogeneousMode();
            (forward) nvmlDeviceSetVgpuSchedulerState();
            (forward) nvmlDeviceSetVgpuSchedulerState_v2();
            (forward) nvmlDeviceSetVirtualizationMode();
            (forward) nvmlDeviceSetupNvlinkNvleEncryptionKey_v1();
            (forward) nvmlDeviceValidateInforom();
            (forward) nvmlDeviceVgpuForceGspUnload();
            (forward) nvmlDeviceWorkloadPowerProfileClearRequestedProfiles();
            (forward) nvmlDeviceWorkloadPowerProfileGetCurrentProfiles();
            (forward) nvmlDeviceWorkloadPowerProfileGetProfilesInfo();
            (forward) nvmlDeviceWorkloadPowerProfileSetRequestedProfiles();
            (forward) nvmlDeviceWorkloadPowerProfileUpdateProfiles_v1();
            (forward) nvmlEventSetCreate();
            (forward) nvmlEventSetFree();
            (forward) nvmlEventSetGetContextCount_v1();
            (forward) nvmlEventSetGetContextData_v1();
            (forward) nvmlEventSetGetContextInfo_v1();
            (forward) nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1();
            (forward) nvmlEventSetRegisterGpuOperationalEvents_v1();
            (forward) nvmlEventSetWait();
            (forward) nvmlEventSetWait_v2();
            (forward) nvmlEventSetWait_v3();
            (forward) nvmlGetExcludedDeviceCount(deviceCount: *mut c_uint);
            (forward) nvmlGetExcludedDeviceInfoByIndex();
            (forward) nvmlGetVgpuCompatibility();
            (forward) nvmlGetVgpuDriverCapabilities();
            (forward) nvmlGetVgpuVersion();
            (forward) nvmlGpmMetricsGet();
            (forward) nvmlGpmMigSampleGet();
            (forward) nvmlGpmQueryDeviceSupport();
            (forward) nvmlGpmQueryIfStreamingEnabled();
            (forward) nvmlGpmSampleAlloc();
            (forward) nvmlGpmSampleFree();
            (forward) nvmlGpmSampleGet();
            (forward) nvmlGpmSetStreamingEnabled();
            (forward) nvmlGpuInstanceCreateComputeInstance();
            (forward) nvmlGpuInstanceCreateComputeInstanceWithPlacement();
            (forward) nvmlGpuInstanceDestroy();
            (forward) nvmlGpuInstanceGetActiveVgpus();
            (forward) nvmlGpuInstanceGetComputeInstanceById();
            (forward) nvmlGpuInstanceGetComputeInstancePossiblePlacements();
            (forward) nvmlGpuInstanceGetComputeInstanceProfileInfo();
            (forward) nvmlGpuInstanceGetComputeInstanceProfileInfoV();
            (forward) nvmlGpuInstanceGetComputeInstanceRemainingCapacity();
            (forward) nvmlGpuInstanceGetComputeInstances();
            (forward) nvmlGpuInstanceGetCreatableVgpus();
            (forward) nvmlGpuInstanceGetInfo();
            (forward) nvmlGpuInstanceGetVgpuHeterogeneousMode();
            (forward) nvmlGpuInstanceGetVgpuSchedulerLog();
            (forward) nvmlGpuInstanceGetVgpuSchedulerLog_v2();
            (forward) nvmlGpuInstanceGetVgpuSchedulerState();
            (forward) nvmlGpuInstanceGetVgpuSchedulerState_v2();
            (forward) nvmlGpuInstanceGetVgpuTypeCreatablePlacements();
            (forward) nvmlGpuInstanceSetVgpuHeterogeneousMode();
            (forward) nvmlGpuInstanceSetVgpuSchedulerState();
            (forward) nvmlGpuInstanceSetVgpuSchedulerState_v2();
            (forward) nvmlInit();
            (forward) nvmlInit_v2();
            (forward) nvmlInitWithFlags(flags: c_uint);
            (forward) nvmlSetVgpuVersion();
            (forward) nvmlShutdown();
            (forward) nvmlSystemEventSetCreate();
            (forward) nvmlSystemEventSetFree();
            (forward) nvmlSystemEventSetWait();
            (forward) nvmlSystemGetCPER_v1();
            (forward) nvmlSystemGetConfComputeCapabilities();
            (forward) nvmlSystemGetConfComputeGpusReadyState();
            (forward) nvmlSystemGetConfComputeKeyRotationThresholdInfo();
            (forward) nvmlSystemGetConfComputeSettings();
            (forward) nvmlSystemGetConfComputeSettings_v2();
            (forward) nvmlSystemGetConfComputeState();
            (forward) nvmlSystemGetCudaDriverVersion(cudaDriverVersion: *mut c_int);
            (forward) nvmlSystemGetCudaDriverVersion_v2(cudaDriverVersion: *mut c_int);
            (forward) nvmlSystemGetDriverBranch();
            (forward) nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint);
            (forward) nvmlSystemGetHicVersion();
            (forward) nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint);
            (forward) nvmlSystemGetNvlinkBwMode();
            (forward) nvmlSystemGetProcessName(pid: c_uint, name: *mut c_char, length: c_uint);
            (forward) nvmlSystemGetTopologyGpuSet();
            (forward) nvmlSystemRegisterEvents();
            (forward) nvmlSystemSetConfComputeGpusReadyState();
            (forward) nvmlSystemSetConfComputeKeyRotationThresholdInfo();
            (forward) nvmlSystemSetNvlinkBwMode();
            (forward) nvmlUnitGetCount(unitCount: *mut c_uint);
            (forward) nvmlUnitGetDevices();
            (forward) nvmlUnitGetFanSpeedInfo();
            (forward) nvmlUnitGetHandleByIndex();
            (forward) nvmlUnitGetLedState();
            (forward) nvmlUnitGetPsuInfo();
            (forward) nvmlUnitGetTemperature();
            (forward) nvmlUnitGetUnitInfo();
            (forward) nvmlUnitSetLedState();
            (forward) nvmlVgpuInstanceClearAccountingPids();
            (forward) nvmlVgpuInstanceGetAccountingMode();
            (forward) nvmlVgpuInstanceGetAccountingPids();
            (forward) nvmlVgpuInstanceGetAccountingStats();
            (forward) nvmlVgpuInstanceGetEccMode();
            (forward) nvmlVgpuInstanceGetEncoderCapacity();
            (forward) nvmlVgpuInstanceGetEncoderSessions();
            (forward) nvmlVgpuInstanceGetEncoderStats();
            (forward) nvmlVgpuInstanceGetFBCSessions();
            (forward) nvmlVgpuInstanceGetFBCStats();
            (forward) nvmlVgpuInstanceGetFbUsage();
            (forward) nvmlVgpuInstanceGetFrameRateLimit();
            (forward) nvmlVgpuInstanceGetGpuInstanceId();
            (forward) nvmlVgpuInstanceGetGpuPciId();
            (forward) nvmlVgpuInstanceGetLicenseInfo();
            (forward) nvmlVgpuInstanceGetLicenseInfo_v2();
            (forward) nvmlVgpuInstanceGetLicenseStatus();
            (forward) nvmlVgpuInstanceGetMdevUUID();
            (forward) nvmlVgpuInstanceGetMetadata();
            (forward) nvmlVgpuInstanceGetPlacementId();
            (forward) nvmlVgpuInstanceGetRuntimeStateSize();
            (forward) nvmlVgpuInstanceGetType();
            (forward) nvmlVgpuInstanceGetUUID();
            (forward) nvmlVgpuInstanceGetVmDriverVersion();
            (forward) nvmlVgpuInstanceGetVmID();
            (forward) nvmlVgpuInstanceSetEncoderCapacity();
            (forward) nvmlVgpuTypeGetBAR1Info();
            (forward) nvmlVgpuTypeGetCapabilities();
            (forward) nvmlVgpuTypeGetClass();
            (forward) nvmlVgpuTypeGetDeviceID();
            (forward) nvmlVgpuTypeGetFbReservation();
            (forward) nvmlVgpuTypeGetFrameRateLimit();
            (forward) nvmlVgpuTypeGetFramebufferSize();
            (forward) nvmlVgpuTypeGetGpuInstanceProfileId();
            (forward) nvmlVgpuTypeGetGspHeapSize();
            (forward) nvmlVgpuTypeGetLicense();
            (forward) nvmlVgpuTypeGetMaxInstances();
            (forward) nvmlVgpuTypeGetMaxInstancesPerGpuInstance();
            (forward) nvmlVgpuTypeGetMaxInstancesPerVm();
            (forward) nvmlVgpuTypeGetName();
            (forward) nvmlVgpuTypeGetNumDisplayHeads();
            (forward) nvmlVgpuTypeGetResolution();
        }
    };
}

/// One function.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    /// The twin's answer as `module::function`, or `forward`.
    pub handler: &'static str,
    /// (argument, Rust type); empty where nobody looks at them.
    pub arguments: &'static [(&'static str, &'static str)],
}

macro_rules! handler {
    ((forward)) => {
        "forward"
    };
    (($module:ident::$function:ident)) => {
        concat!(stringify!($module), "::", stringify!($function))
    };
}

macro_rules! rows {
    ($($handler:tt $name:ident($($argument:ident: $kind:ty),*);)*) => {
        /// Every row, in the order of the table.
        pub const ROWS: &[Row] = &[$(Row {
            name: stringify!($name),
            handler: handler!($handler),
            arguments: &[$((stringify!($argument), stringify!($kind))),*],
        }),*];
    };
}

crate::nvml_functions!(rows);

const NAME_LIST: [&str; ROWS.len()] = {
    let mut list = [""; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        list[at] = ROWS[at].name;
        at += 1;
    }
    list
};

/// The names of the rows: all that the twin needs of them.
static NAMES: Names<{ ROWS.len() }, { length(&NAME_LIST) }> = Names::of(&NAME_LIST);

/// The row of a name, as its place in [`ROWS`].
pub fn by_name(name: &str) -> Option<usize> {
    NAMES.places(name).first().map(|place| usize::from(*place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_begin_as_nvml_does() {
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        for (place, row) in ROWS.iter().enumerate() {
            assert_eq!(by_name(row.name), Some(place));
        }
        assert!(names.iter().all(|name| name.starts_with("nvml")));
        assert!(!names.contains(ERROR_STRING));
    }

    /// What speaks of a device's memory or processes shows other tenants unless the twin answers it.
    #[test]
    fn nothing_about_memory_or_processes_is_passed_on_unseen() {
        let excused = [
            ("nvmlDeviceGetMemoryBusWidth", "a property of the board"),
            ("nvmlDeviceGetMemoryErrorCounter", "errors, not use"),
            ("nvmlDeviceGetMemoryAffinity", "a property of the board"),
            (
                "nvmlDeviceGetMemoryLimits_v1",
                "the driver's own limits of a cgroup",
            ),
            ("nvmlDeviceGetBAR1MemoryInfo", "the window, not the memory"),
            ("nvmlDeviceGetAccountingMode", "a mode"),
            ("nvmlDeviceGetAccountingBufferSize", "a property of the driver"),
            (
                "nvmlDeviceGetConfComputeProtectedMemoryUsage",
                "confidential computing has one tenant",
            ),
        ];
        for row in ROWS {
            let about = [
                "MemoryInfo",
                "RunningProcess",
                "ProcessUtil",
                "ProcessesUtil",
                "Accounting",
                "GetMemory",
                "MemoryUsage",
            ];
            let device = row.name.starts_with("nvmlDeviceGet") && !row.name.contains("Vgpu");
            let concerned = device && about.iter().any(|word| row.name.contains(word));
            let excuse = excused.iter().any(|(name, _)| *name == row.name);
            assert!(!concerned || excuse || row.handler != "forward", "{}", row.name);
        }
    }
}
