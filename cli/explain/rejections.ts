import { isLauncherOf } from '../../console/server/history.ts';
import type { KubeClient } from '../../kube/client.ts';
import { REJECTIONS } from '../../model/vm-state/rejected.ts';
import { readIfAllowed } from '../support/lists.ts';
import { type Occurrence, occurrence, timeOf } from './objects.ts';

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
