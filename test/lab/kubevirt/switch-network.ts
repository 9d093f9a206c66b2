import assert from 'node:assert/strict';
import { NAMESPACE } from '../cluster.ts';
import { applyObjects, deleteObjects } from '../scenarios/guest-agent.ts';
import { BIN_DIR, useCni } from '../scenarios/guest-cni.ts';
import type { Scene } from '../scenarios/scenario.ts';

/** Networks on the two bridges of `wireSwitch`, by physnet. */
export const NETWORKS = { physnet0: 'net0', physnet1: 'net1' } as const;

/** The CNI type of OVN-Kubernetes' localnets; in the lab it is the name of the plugin below. */
const PLUGIN = 'ovn-k8s-cni-overlay';

/** Stands in for OVN-Kubernetes' plugin: veths from the pod to the physnet's bridge in ovn-bridge-mappings. */
const PROGRAM = `#!/usr/bin/env node
const { execFileSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { CNI_COMMAND: command, CNI_CONTAINERID: container, CNI_IFNAME: name, CNI_NETNS: netns } = process.env;
const run = (file, ...args) => execFileSync(file, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
const conf = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const port = 'lab' + createHash('sha256').update(container + name).digest('hex').slice(0, 10);
if (command === 'VERSION') {
  console.log(JSON.stringify({ cniVersion: '1.0.0', supportedVersions: ['0.4.0', '1.0.0'] }));
} else if (command === 'ADD') {
  const mappings = JSON.parse(run('ovs-vsctl', 'get', 'Open_vSwitch', '.', 'external_ids:ovn-bridge-mappings'));
  const [, bridge] = mappings.split(',').map((one) => one.split(':')).find(([one]) => one === conf.physicalNetworkName);
  run('ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', port + 'p');
  run('ip', 'link', 'set', port + 'p', 'netns', netns, 'name', name);
  run('ip', 'link', 'set', port, 'up');
  run('nsenter', '--net=' + netns, 'ip', 'link', 'set', name, 'up');
  run('ovs-vsctl', 'add-port', bridge, port);
  const [{ address: mac }] = JSON.parse(run('nsenter', '--net=' + netns, 'ip', '-json', 'link', 'show', 'dev', name));
  console.log(JSON.stringify({ cniVersion: conf.cniVersion, interfaces: [{ name, mac, sandbox: netns }] }));
} else if (command === 'DEL') {
  run('ovs-vsctl', '--if-exists', 'del-port', port);
  try { run('ip', 'link', 'delete', port); } catch { /* It went with its pod. */ }
}
`;

/** Kinds that multus reads with the node's credentials here, for which a node has no permission by default. */
const READERS = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'lab-multus' },
    rules: [{ apiGroups: ['k8s.cni.cncf.io'], resources: ['network-attachment-definitions'], verbs: ['get'] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'lab-multus' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'lab-multus' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
  },
] as const;

const definitions = Object.entries(NETWORKS).map(([physicalNetworkName, name]) => ({
  apiVersion: 'k8s.cni.cncf.io/v1',
  kind: 'NetworkAttachmentDefinition',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    config: JSON.stringify({
      cniVersion: '1.0.0',
      name,
      type: PLUGIN,
      topology: 'localnet',
      physicalNetworkName,
      netAttachDefName: `${NAMESPACE}/${name}`,
    }),
  },
}));

/** Multus in front of the pod network, and two networks of Open vSwitch, until the end of the scenario. */
export async function attachSwitchNetworks(scene: Scene): Promise<void> {
  const objects = [...READERS, ...definitions];
  scene.undo(async () => deleteObjects(scene.lab, objects));
  applyObjects(scene.lab, objects);
  for (const machine of scene.machines) await installPlugins(machine);
}

async function installPlugins(machine: Scene): Promise<void> {
  const { lab, holds, undo, node } = machine;
  const cni = await useCni(machine);
  await lab.run(`cat >${BIN_DIR}/${PLUGIN} && chmod 755 ${BIN_DIR}/${PLUGIN}`, PROGRAM);
  undo(() => lab.run(`rm -f ${BIN_DIR}/${PLUGIN}`));
  await cni.write('multus');
  await holds(`multus is the primary network of ${node.name}`, async () => {
    const [first] = await cni.files();
    assert.equal(first, '00-multus.conf');
  });
}

export async function portsOf({ lab }: Scene, physnet: keyof typeof NETWORKS): Promise<readonly string[]> {
  const ports = await lab.run(`ovs-vsctl list-ports br-lab-net${physnet.at(-1)}`);
  return ports.split('\n').filter((port) => /^lab[0-9a-f]{10}$/.test(port));
}
