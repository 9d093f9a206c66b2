import * as z from 'zod';
import { name } from '../bounds.ts';
import { createReflector, type Reflector, type WatchOptions } from '../reflector.ts';
import { objectMeta } from '../resources.ts';

export const RESOURCE_SLICES_PATH = '/apis/resource.k8s.io/v1/resourceslices';

/** https://github.com/kubernetes-sigs/dra-driver-cpu: it gives CPUs to claims. */
const DRA_CPU_DRIVER = 'dra.cpu';

export const resourceSlice = z.object({
  metadata: objectMeta,
  spec: z.object({ driver: name, nodeName: name.nullish() }),
});

/** The node whose CPUs the driver dra.cpu offers in this slice. */
export function draCpuNode({ spec }: z.infer<typeof resourceSlice>): string | undefined {
  return spec.driver === DRA_CPU_DRIVER ? (spec.nodeName ?? undefined) : undefined;
}

/** @param changed called when a node gets a slice of dra.cpu or loses one, with whether it has any */
export function createResourceSliceReflector(
  options: WatchOptions,
  changed: (node: string, hasDraCpu: boolean) => void,
): Reflector<string | undefined> {
  const slices = new Map<string, number>();
  const count = (node: string | undefined, change: 1 | -1) => {
    if (node === undefined) return;
    const total = (slices.get(node) ?? 0) + change;
    if (total > 0) slices.set(node, total);
    else slices.delete(node);
    changed(node, total > 0);
  };
  return createReflector({
    ...options,
    path: RESOURCE_SLICES_PATH,
    schema: resourceSlice,
    project: draCpuNode,
    onChange: ({ before, after }) => {
      if (before === after) return;
      count(before, -1);
      count(after, 1);
    },
    optional: true,
  });
}
