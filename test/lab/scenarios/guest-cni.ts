import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { podBridge } from '../machine/node-files.ts';
import type { Scene } from './scenario.ts';

export const CONF_DIR = '/etc/cni/net.d';
/** The plugin directories of the lab's containerd: that of the distribution, and that of the agent. */
export const BIN_DIR = '/usr/lib/cni';
export const AGENT_BIN_DIR = '/opt/cni/bin';

/** `bridge` for CNI 1.1.0, which the guest's does not support: translates it, and answers STATUS. */
const NEWER = `#!/bin/sh
case "$CNI_COMMAND" in STATUS | GC) exit 0 ;; esac
answer=$(sed 's/"cniVersion":"1\\.1\\.0"/"cniVersion":"1.0.0"/g; s/"type":"lab-newer"/"type":"bridge"/' | ${BIN_DIR}/bridge)
code=$?
printf '%s' "$answer" | sed 's/"1\\.0\\.0"/"1.1.0"/g'
exit $code
`;

const tuning = { type: 'tuning', sysctl: { 'net.ipv4.conf.eth0.arp_notify': '1' } };

const primaries = (bridge: ReturnType<typeof podBridge>) => ({
  list: { file: '10-lab.conflist', conf: { cniVersion: '1.0.0', name: 'lab', plugins: [bridge, tuning] } },
  multus: {
    file: '00-multus.conf',
    conf: {
      cniVersion: '1.0.0',
      name: 'multus-cni-network',
      type: 'multus',
      // The node's credentials; the real one requests the pod's networks from the API server, and records its result.
      kubeconfig: '/etc/lab/kubeconfig',
      delegates: [{ cniVersion: '1.0.0', name: 'lab', ...bridge }],
    },
  },
  newer: {
    file: '10-lab.conflist',
    conf: { cniVersion: '1.1.0', name: 'lab', plugins: [{ ...bridge, type: 'lab-newer' }] },
  },
});

export type GuestCni = Awaited<ReturnType<typeof useCni>>;

export function realMultus(): string | undefined {
  const file = join(process.env['MULTUS_ASSETS'] ?? '', 'multus');
  return process.env['MULTUS_ASSETS'] && existsSync(file) ? file : undefined;
}

export async function useCni({ lab, undo }: Scene) {
  const kept = '/var/lib/plumbline-lab-cni.tar';
  await lab.run(`tar -cf ${kept} ${CONF_DIR}`);
  undo(() => lab.run(`rm -rf ${CONF_DIR}/* ${AGENT_BIN_DIR}/plumbline-gate && tar -C / -xf ${kept} && rm ${kept}`));
  const multus = realMultus();
  await lab.run(`cat >${BIN_DIR}/lab-newer && chmod 755 ${BIN_DIR}/lab-newer`, NEWER);
  undo(() => lab.run(`rm -f ${BIN_DIR}/lab-newer`));
  if (multus !== undefined) {
    await lab.copy(multus, `${BIN_DIR}/multus`);
    undo(() => lab.run(`rm -rf ${BIN_DIR}/multus /var/lib/cni/multus`));
  }
  return {
    async write(primary: keyof ReturnType<typeof primaries>) {
      const { file, conf } = primaries(podBridge(lab.podNetwork))[primary];
      const path = `${CONF_DIR}/${file}`;
      await lab.run(`cat >${path}.tmp && mv ${path}.tmp ${path}`, JSON.stringify(conf));
    },
    files: async (): Promise<readonly string[]> => (await lab.run(`ls ${CONF_DIR}`)).trim().split('\n'),
    read: async (file: string) => JSON.parse(await lab.run(`cat ${CONF_DIR}/${file}`)) as Record<string, unknown>,
    async killSandbox(podUid: string) {
      const filter = `labels."io.kubernetes.pod.uid"==${podUid},labels."io.cri-containerd.kind"==sandbox`;
      await lab.run(`ctr -n k8s.io task kill -s SIGKILL "$(ctr -n k8s.io containers list -q '${filter}' | head -n 1)"`);
    },
  };
}
