import jsonPatch from 'fast-json-patch';
import type { PatchOperation } from './admission-review.ts';

const { compare } = jsonPatch;

/** What is to become of a launcher pod. */
export interface PodChange {
  /** Index of the container in spec.containers. */
  readonly container: number;
  /** CPUs that request and limit become; undefined leaves them. */
  readonly cpus: number | undefined;
  /** Extended resources of which the container requests one each. */
  readonly resources: readonly string[];
  /** Annotations to set; undefined removes one. */
  readonly annotations: Readonly<Record<string, string | undefined>>;
}

/** An object as it came over the wire: patched as it is, so that nothing the schemas do not know is lost. */
export interface RawPod {
  metadata: { annotations?: Record<string, string> | null };
  spec: {
    containers: {
      resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
    }[];
  };
}

/**
 * The JSON patch that makes the change: only differences, parents created where they are missing, nothing replaced
 * that holds more than the change. Empty if the pod is so already.
 */
export function patchFor(pod: RawPod, change: PodChange): readonly PatchOperation[] {
  const target = structuredClone(pod);
  applyResources(target, change);
  const annotations = { ...target.metadata.annotations };
  for (const [name, value] of Object.entries(change.annotations)) {
    if (value === undefined) delete annotations[name];
    else annotations[name] = value;
  }
  if (pod.metadata.annotations || Object.keys(annotations).length > 0) target.metadata.annotations = annotations;
  return compare(pod, target);
}

function applyResources(pod: RawPod, { container, cpus, resources }: PodChange): void {
  const one = pod.spec.containers[container];
  if (one === undefined || (cpus === undefined && resources.length === 0)) return;
  const wanted = {
    ...(cpus === undefined ? {} : { cpu: String(cpus) }),
    ...Object.fromEntries(resources.map((name) => [name, '1'])),
  };
  one.resources = {
    ...one.resources,
    requests: { ...one.resources?.requests, ...wanted },
    limits: { ...one.resources?.limits, ...wanted },
  };
}
