import type { KubeClient } from '../../kube/client.ts';
import { REJECTIONS } from '../../model/vm-state/rejected.ts';
import { readIfAllowed } from '../support/lists.ts';
import { type Occurrence, occurrence, timeOf } from './objects.ts';

/** The API server cuts the prefix of generated names to this length and adds five characters. */
const LONGEST_PREFIX = 58;
const SUFFIX = /^[a-z0-9]{5}$/;

/**
 * Events of a VM's launchers that kubelets rejected, newest first. KubeVirt deletes such a launcher and its VMI at
 * once, so only these Events are left.
 * @throws KubeError
 */
export async function readRejections(
  client: Pick<KubeClient, 'get'>,
  namespace: string,
  vm: string,
): Promise<Occurrence[]> {
  const lists = await Promise.all(
    REJECTIONS.map((reason) =>
      readIfAllowed(client, `/api/v1/namespaces/${namespace}/events`, occurrence, {
        fieldSelector: `reason=${reason}`,
      }),
    ),
  );
  return lists
    .flatMap((list) => list ?? [])
    .filter(({ involvedObject }) => isLauncherOf(vm, involvedObject.name ?? ''))
    .sort((a, b) => timeOf(b) - timeOf(a));
}

/**
 * Whether a pod with that name is a launcher of the VM: KubeVirt names them `virt-launcher-<VM>-` with a generated
 * suffix.
 */
function isLauncherOf(vm: string, pod: string): boolean {
  const prefix = `virt-launcher-${vm}-`.slice(0, LONGEST_PREFIX);
  return pod.startsWith(prefix) && SUFFIX.test(pod.slice(prefix.length));
}
