/**
 * Fields of a Pod and a VirtualMachineInstance that affect the decision about a launcher. The objects parsed in kube/
 * have these shapes; tests write only the fields that they need.
 */

type ResourceList = Readonly<Record<string, string>>;

interface Resources {
  readonly requests?: ResourceList | null | undefined;
  readonly limits?: ResourceList | null | undefined;
}

export interface ContainerShape {
  readonly name: string;
  /** `Always` on an init container makes it a sidecar, which runs alongside the other containers. */
  readonly restartPolicy?: string | undefined;
  readonly resources?: Resources | null | undefined;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
}

export interface MetaShape {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | null | undefined;
  readonly annotations?: Readonly<Record<string, string>> | null | undefined;
}

export interface PodShape {
  readonly metadata: MetaShape & { readonly ownerReferences?: readonly OwnerReference[] | null | undefined };
  readonly spec: {
    readonly containers: readonly ContainerShape[];
    readonly initContainers?: readonly ContainerShape[] | null | undefined;
    /** Pod-level resources (Kubernetes 1.34). */
    readonly resources?: Resources | null | undefined;
    readonly hostNetwork?: boolean | undefined;
  };
}

export interface GuestCpu {
  readonly cores?: number | undefined;
  readonly sockets?: number | undefined;
  readonly threads?: number | undefined;
  readonly dedicatedCpuPlacement?: boolean | undefined;
  readonly isolateEmulatorThread?: boolean | undefined;
  readonly numa?: { readonly guestMappingPassthrough?: object | null | undefined } | null | undefined;
}

type DeviceNames = readonly { readonly deviceName?: string | undefined }[] | null | undefined;

export interface VmiShape {
  readonly metadata: MetaShape;
  readonly spec: {
    /** `Paused`, or absent. */
    readonly startStrategy?: string | null | undefined;
    readonly livenessProbe?: object | null | undefined;
    readonly domain: {
      readonly cpu?: GuestCpu | null | undefined;
      /** shared, auto or supplementalPool. */
      readonly ioThreadsPolicy?: string | undefined;
      readonly ioThreads?: { readonly supplementalPoolThreadCount?: number | undefined } | null | undefined;
      readonly resources?: Resources | null | undefined;
      readonly memory?:
        | {
            readonly guest?: string | undefined;
            readonly hugepages?: { readonly pageSize?: string | undefined } | null | undefined;
          }
        | null
        | undefined;
      readonly devices?: { readonly gpus?: DeviceNames; readonly hostDevices?: DeviceNames } | null | undefined;
    };
  };
}

/** KubeVirt's name of the container that runs QEMU. */
export const COMPUTE = 'compute';
