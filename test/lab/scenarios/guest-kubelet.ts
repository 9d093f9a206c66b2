import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { KUBELET_ROOT } from '../guest.ts';
import { CPU_CHECKPOINT } from '../snapshot.ts';
import type { Scene } from './scenario.ts';

const CONFIG = '/etc/lab/kubelet.yaml';
const CHECKPOINT = `${KUBELET_ROOT}/${CPU_CHECKPOINT}`;

const kubeletConfig = z.looseObject({ kind: z.literal('KubeletConfiguration') });

/** Policy `none` accepts no options of the static one: a kubelet with such options does not start. */
export const POLICY_NONE = { cpuManagerPolicy: 'none', cpuManagerPolicyOptions: undefined } as const;

/**
 * Restarts the kubelet with other settings and without the state of its CPU manager, as operators do, because a kubelet
 * with the state of another policy does not start. Pods keep running. At the end of the scenario it has its own
 * settings again.
 * @param settings of its configuration; undefined removes one
 * @returns a function that restores its settings before the end of the scenario
 */
export async function reconfigureKubelet(
  { lab, undo }: Scene,
  settings: Readonly<Record<string, unknown>>,
): Promise<() => Promise<void>> {
  const before = await lab.run(`cat ${CONFIG}`);
  const configure = async (text: string) => {
    await lab.run(`systemctl stop kubelet && cat >${CONFIG} && rm -f ${CHECKPOINT} && systemctl start kubelet`, text);
  };
  let isOwn = false;
  const back = async () => {
    if (isOwn) return;
    isOwn = true;
    await configure(before);
  };
  undo(back);
  await configure(stringify({ ...kubeletConfig.parse(parse(before)), ...settings }));
  return back;
}
