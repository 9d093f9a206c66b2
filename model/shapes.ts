import { isObject } from './json.ts';

/** The objects parsed in kube/ have these shapes; tests write only the fields that they need. */

/** Of a field that the API may omit or send as null. */
export type Optional<T> = T | null | undefined;

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
  readonly reason?: Optional<string>;
  readonly message?: string | undefined;
  readonly lastTransitionTime?: Optional<string>;
}

/** An entry of metadata.managedFields. */
export interface ManagedFields {
  readonly manager?: string | undefined;
  /** When this manager last changed one of its fields, by the API server's clock. */
  readonly time?: string | undefined;
  readonly fieldsV1?: unknown;
}

/** @param path names of fields, such as `spec` and `renewTime` */
export function ownsField({ fieldsV1 }: ManagedFields, path: readonly string[]): boolean {
  const fields = path.reduce<unknown>((of, name) => (isObject(of) ? of[`f:${name}`] : undefined), fieldsV1);
  return fields !== undefined;
}

interface ContainerStatus {
  readonly state?: Optional<{
    readonly waiting?: Optional<{ readonly reason?: Optional<string>; readonly message?: Optional<string> }>;
  }>;
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
    readonly schedulingGates?: Optional<readonly { readonly name: string }[]>;
  };
  readonly status?: Optional<{
    readonly phase?: string | undefined;
    readonly qosClass?: string | undefined;
    readonly reason?: string | undefined;
    readonly message?: string | undefined;
    readonly nominatedNodeName?: string | undefined;
    readonly conditions?: Optional<readonly ConditionShape[]>;
    readonly containerStatuses?: Optional<readonly ContainerStatus[]>;
    readonly initContainerStatuses?: Optional<readonly ContainerStatus[]>;
  }>;
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

type DeviceNames = Optional<readonly { readonly deviceName?: string | undefined }[]>;

interface VmiNetwork {
  readonly name: string;
  readonly pod?: Optional<object>;
  readonly multus?: { readonly networkName: string; readonly default?: boolean | undefined } | undefined;
}

export interface VmiShape {
  readonly metadata: MetaShape;
  readonly spec: {
    /** `Paused`, or absent. */
    readonly startStrategy?: Optional<string>;
    readonly livenessProbe?: Optional<object>;
    readonly networks?: readonly VmiNetwork[] | undefined;
    readonly domain: {
      readonly cpu?: GuestCpu | undefined;
      /** shared, auto or supplementalPool. */
      readonly ioThreadsPolicy?: string | undefined;
      readonly ioThreads?: { readonly supplementalPoolThreadCount?: number | undefined } | undefined;
      readonly resources?: Resources | undefined;
      readonly memory?: Optional<{
        readonly guest?: string | undefined;
        readonly hugepages?: Optional<{ readonly pageSize?: string | undefined }>;
      }>;
      readonly devices?: Optional<{ readonly gpus?: DeviceNames; readonly hostDevices?: DeviceNames }>;
    };
  };
}

export const COMPUTE = 'compute';
