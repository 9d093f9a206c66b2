import * as z from 'zod';
import { list, text, word } from '../../kube/bounds.ts';
import { createReflector } from '../../kube/reflector.ts';
import { objectMeta, pod as podSchema } from '../../kube/resources.ts';
import { ParseError } from '../../model/errors.ts';
import { type MaskRequest, maskRequestOf } from '../../model/launcher/mask-request.ts';
import { recognizeLauncher, type VmiReference } from '../../model/launcher/recognize.ts';
import { COMPUTE } from '../../model/shapes.ts';
import { TenantBudget } from '../../runtime/tenant-budget.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import type { Services } from '../lifecycle/duty.ts';

export interface Launcher {
  readonly uid: string;
  readonly namespace: string;
  readonly podName: string;
  readonly vmi: VmiReference;
  readonly migrated: boolean;
  /** Undefined without a mask, and with one that pins nothing or cannot be parsed. */
  readonly maskRequest: MaskRequest | undefined;
  readonly problem: string | undefined;
  /** Id of the container that runs QEMU; undefined until the kubelet reports it. */
  readonly containerId: string | undefined;
}

export const launcherPodSchema = z.object({
  metadata: objectMeta,
  spec: podSchema.shape.spec.pick({ containers: true }),
  status: z
    .object({ containerStatuses: list(z.object({ name: word, containerID: text(256).nullish() }), 512).nullish() })
    .nullish(),
});

/** `containerd://<id>`, `cri-o://<id>`. The id becomes the name of a directory, so only plain names are accepted. */
const CONTAINER_ID = /^[a-z0-9-]{1,32}:\/\/([A-Za-z0-9][A-Za-z0-9_.-]{0,127})$/;

/** Undefined for a pod that only looks like a launcher. */
export function nodeLauncherOf(pod: z.infer<typeof launcherPodSchema>): Launcher | undefined {
  const recognized = recognizeLauncher(pod);
  const { uid, namespace, name } = pod.metadata;
  if (recognized.kind !== 'launcher' || uid === undefined || namespace === undefined || name === undefined) return;
  const status = pod.status?.containerStatuses?.find((containerStatus) => containerStatus.name === COMPUTE);
  return {
    uid,
    namespace,
    podName: name,
    vmi: recognized.vmi,
    migrated: recognized.purpose === 'migration-target',
    ...maskOf(pod.metadata),
    containerId: CONTAINER_ID.exec(status?.containerID ?? '')?.[1],
  };
}

function maskOf(meta: z.infer<typeof objectMeta>): Pick<Launcher, 'maskRequest' | 'problem'> {
  try {
    return { maskRequest: maskRequestOf(meta), problem: undefined };
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    return { maskRequest: undefined, problem: error.message };
  }
}

/** Two hundred launchers of one namespace with the longest masks need half of it. */
const MAX_BYTES = 16 * 1024 * 1024;

type LauncherWatchDeps = Pick<Services, 'client' | 'nodeName' | 'log'> & { readonly onChange: () => void };

export function watchLaunchers({ client, nodeName, onChange, log }: LauncherWatchDeps) {
  return createReflector({
    client,
    path: '/api/v1/pods',
    query: { labelSelector: 'kubevirt.io=virt-launcher', fieldSelector: `spec.nodeName=${nodeName}` },
    schema: launcherPodSchema,
    project: nodeLauncherOf,
    budget: new TenantBudget(MAX_BYTES),
    onChange,
    log,
    nowSeconds: monotonicSeconds,
  });
}
