/** The objects parsed in kube/ have these shapes; tests write only the fields that they need. */

export type ResourceList = Readonly<Record<string, string>>;

export interface Resources {
  readonly requests?: ResourceList | undefined;
  readonly limits?: ResourceList | undefined;
}

export interface ContainerShape {
  readonly name: string;
  /** `Always` on an init container makes it a sidecar, which runs alongside the other containers. */
  readonly restartPolicy?: string | undefined;
  readonly resources?: Resources | undefined;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

export interface MetaShape {
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

export interface ConditionShape {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | null | undefined;
  readonly message?: string | undefined;
  readonly lastTransitionTime?: string | null | undefined;
}

interface ContainerStatus {
  readonly state?:
    | {
        readonly waiting?:
          | { readonly reason?: string | null | undefined; readonly message?: string | null | undefined }
          | null
          | undefined;
      }
    | null
    | undefined;
}

export interface PodShape {
  readonly metadata: MetaShape & {
    readonly ownerReferences?: readonly OwnerReference[] | undefined;
    readonly deletionTimestamp?: string | undefined;
  };
  readonly spec: {
    readonly containers: readonly ContainerShape[];
    readonly initContainers?: readonly ContainerShape[] | undefined;
    /** Pod-level resources (Kubernetes 1.34). */
    readonly resources?: Resources | undefined;
    readonly hostNetwork?: boolean | undefined;
    readonly nodeName?: string | undefined;
    readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
    readonly schedulerName?: string | undefined;
    readonly schedulingGates?: readonly { readonly name: string }[] | null | undefined;
  };
  readonly status?:
    | {
        readonly phase?: string | undefined;
        readonly qosClass?: string | undefined;
        readonly reason?: string | undefined;
        readonly message?: string | undefined;
        readonly nominatedNodeName?: string | undefined;
        readonly conditions?: readonly ConditionShape[] | null | undefined;
        readonly containerStatuses?: readonly ContainerStatus[] | null | undefined;
        readonly initContainerStatuses?: readonly ContainerStatus[] | null | undefined;
      }
    | null
    | undefined;
}

export interface GuestCpu {
  readonly cores?: number | undefined;
  readonly sockets?: number | undefined;
  readonly threads?: number | undefined;
  readonly dedicatedCpuPlacement?: boolean | undefined;
  readonly isolateEmulatorThread?: boolean | undefined;
  /** Its CPUs come from a claim: they are not in the launcher's requests. */
  readonly dra?: object | undefined;
  readonly numa?: { readonly guestMappingPassthrough?: object | undefined } | undefined;
}

type DeviceNames = readonly { readonly deviceName?: string | undefined }[] | null | undefined;

interface VmiNetwork {
  readonly name: string;
  readonly pod?: object | null | undefined;
  readonly multus?: { readonly networkName: string; readonly default?: boolean | undefined } | undefined;
}

export interface VmiShape {
  readonly metadata: MetaShape;
  readonly spec: {
    /** `Paused`, or absent. */
    readonly startStrategy?: string | null | undefined;
    readonly livenessProbe?: object | null | undefined;
    readonly networks?: readonly VmiNetwork[] | undefined;
    readonly domain: {
      readonly cpu?: GuestCpu | undefined;
      /** shared, auto or supplementalPool. */
      readonly ioThreadsPolicy?: string | undefined;
      readonly ioThreads?: { readonly supplementalPoolThreadCount?: number | undefined } | undefined;
      readonly resources?: Resources | undefined;
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

export const COMPUTE = 'compute';
