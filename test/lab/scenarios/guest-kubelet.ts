import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { KUBELET_ROOT } from '../guest.ts';
import { CPU_CHECKPOINT } from '../snapshot.ts';
import type { Scene } from './scenario.ts';

const CONFIG = '/etc/lab/kubelet.yaml';
const CHECKPOINT = `${KUBELET_ROOT}/${CPU_CHECKPOINT}`;

const kubeletConfig = z.looseObject({ kind: z.literal('KubeletConfiguration') });

/** Policy `none` takes no options of the static one: a kubelet that finds some does not start. */
export const POLICY_NONE = { cpuManagerPolicy: 'none', cpuManagerPolicyOptions: undefined } as const;

/**
 * Restarts the kubelet with other settings, and without the state of its CPU manager: one that finds the state of another
 * policy does not start, so this is what operators do. Pods keep running. At the end of the scenario it has its own
 * settings again.
 * @param settings of its configuration; undefined takes one out
 * @returns a function that gives it its own settings before the scenario's end
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
