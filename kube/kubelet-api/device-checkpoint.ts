import * as z from 'zod';

/** The state of the kubelet's device manager, a file in its directory of device plugins. */
export const DEVICE_CHECKPOINT_FILE = 'kubelet_internal_checkpoint';

const entry = z.object({
  PodUID: z.string(),
  ContainerName: z.string(),
  ResourceName: z.string(),
  /** Device ids by NUMA node; -1 if the plugin reported none. */
  DeviceIDs: z.record(z.string(), z.array(z.string())),
});

/** The content of the file. Source: pkg/kubelet/cm/devicemanager/checkpoint. */
export const deviceCheckpoint = z.object({ Data: z.object({ PodDeviceEntries: z.array(entry).nullish() }) });
