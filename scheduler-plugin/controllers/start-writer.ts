import type { KubeClient } from '../../kube/client.ts';
import { formatPausedStart, type PausedStart } from '../../model/launcher/paused-start.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import type { MaskedInstance } from '../cluster/masked-vms.ts';

/** Writes the progress of a paused start. @throws KubeError */
export type StartWriter = ReturnType<typeof createStartWriter>;

export function createStartWriter(client: Pick<KubeClient, 'patch' | 'replace'>) {
  const path = (group: string, { namespace, name }: MaskedInstance) =>
    `/apis/${group}/v1/namespaces/${namespace}/virtualmachineinstances/${name}`;
  return {
    /**
     * Records the progress.
     * @param seen `as seen` to write only if the VMI has not changed since it was read
     */
    async record(vmi: MaskedInstance, next: PausedStart, seen: 'as seen' | 'whatever it is') {
      const annotations = { [PAUSED_START_ANNOTATION]: formatPausedStart(next) };
      // The uid protects a later VMI of the same name.
      const metadata = { uid: vmi.uid, annotations, ...(seen === 'as seen' && { resourceVersion: vmi.version }) };
      await client.patch(path('kubevirt.io', vmi), 'application/merge-patch+json', { metadata });
    },
    /** Unpauses through KubeVirt's subresource: conflict (409) while it is not Running, not Paused, or in a snapshot. */
    async unpause(vmi: MaskedInstance) {
      await client.replace(`${path('subresources.kubevirt.io', vmi)}/unpause`, {});
    },
  };
}
