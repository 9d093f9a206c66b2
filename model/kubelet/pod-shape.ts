/** Amounts by resource name, as Kubernetes writes them. */
export type ResourceList = Readonly<Record<string, string>>;

export interface PodResources {
  readonly requests?: ResourceList | undefined;
  readonly limits?: ResourceList | undefined;
}

export interface PodContainer {
  readonly name: string;
  readonly resources?: PodResources | undefined;
  readonly restartPolicy?: string | undefined;
}

/** The part of a Kubernetes Pod that the kubelet's resource managers read. */
export interface Pod {
  readonly metadata?: { readonly uid?: string | undefined } | undefined;
  readonly spec?:
    | {
        readonly containers: readonly PodContainer[];
        readonly initContainers?: readonly PodContainer[] | undefined;
        /** Pod-level resources. */
        readonly resources?: PodResources | undefined;
      }
    | undefined;
  readonly status?: { readonly qosClass?: string | undefined } | undefined;
}
