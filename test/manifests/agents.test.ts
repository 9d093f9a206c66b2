import assert from 'node:assert/strict';
import { parseNodeAgentConfig } from '../../node-agent/wiring/config.ts';
import { objectsOf, render } from '../real/install/rendered-fixture.ts';
import { needs } from '../support/parts.ts';

interface Container {
  readonly args?: string[];
  readonly securityContext: {
    readonly capabilities: { readonly drop: string[]; readonly add?: string[] };
    readonly seccompProfile: { readonly type: string };
    readonly seLinuxOptions?: { readonly type: string };
    readonly allowPrivilegeEscalation: boolean;
  };
  readonly volumeMounts: readonly { readonly mountPath: string }[];
}
interface Pod {
  readonly hostPID?: boolean;
  readonly affinity: unknown;
  readonly containers: readonly [Container];
}

const FULL = 'plumbline-node-agent';
const DPU_HOST = 'plumbline-node-agent-dpu-host';

describe('the agent’s manifests', () => {
  needs('kubectl');

  const build = (component?: string) => {
    const objects = objectsOf(render('base', component ? [`base/node-agent/components/${component}`] : []));
    return (name: string) => {
      const agent = objects.find(({ kind, metadata }) => kind === 'DaemonSet' && metadata.name === name);
      const pod = (agent as unknown as { spec: { template: { spec: Pod } } }).spec.template.spec;
      const { args = [], securityContext, volumeMounts } = pod.containers[0];
      const mounts = volumeMounts.map(({ mountPath }) => mountPath);
      return { pod, securityContext, mounts, config: parseNodeAgentConfig([...args, '--node-name', 'worker-0']) };
    };
  };

  it('give the host’s process table, cgroups and one capability, and select different nodes', () => {
    const agentOf = build();
    for (const [name, operator] of [
      [FULL, 'DoesNotExist'],
      [DPU_HOST, 'Exists'],
    ] as const) {
      const { pod, securityContext, mounts } = agentOf(name);
      const { capabilities, seccompProfile, allowPrivilegeEscalation } = securityContext;
      assert.deepEqual(capabilities, { drop: ['ALL'], add: ['SYS_NICE'] });
      assert.deepEqual([pod.hostPID, seccompProfile.type, allowPrivilegeEscalation], [true, 'RuntimeDefault', false]);
      assert.ok(mounts.includes('/host/cgroup'));
      assert.match(JSON.stringify(pod.affinity), new RegExp(`dpu-host","operator":"${operator}`));
    }
    assert.ok(!agentOf(DPU_HOST).mounts.some((path) => path.includes('openvswitch')));
  });

  const gates: [component: string, on: string, off: string, settings: object][] = [
    ['gate', FULL, DPU_HOST, { mode: 'full', gateStatus: 'off' }],
    ['dpu', DPU_HOST, FULL, { mode: 'dpu-host', gateStatus: 'on', dpuLease: 'own' }],
    ['dpu-observe', DPU_HOST, FULL, { mode: 'dpu-host', gateStatus: 'on', dpuLease: 'observe' }],
  ];
  for (const [component, on, off, settings] of gates) {
    it(`with the component ${component}, have the gate’s flags, and mounts for its files`, () => {
      const agentOf = build(component);
      const { config, mounts, securityContext } = agentOf(on);
      assert.ok(securityContext.capabilities.add?.includes('SYS_NICE'));
      assert.deepEqual({ ...config, gate: 'on', ...settings }, config);
      for (const path of [config.cniConfDir, config.cniBinDir, config.runDir]) assert.ok(mounts.includes(path), path);
      assert.equal(agentOf(off).config.gate, 'off');
    });
  }

  it('work with SELinux, on OpenShift, and with a network map', () => {
    const [selinux, mapped, openshift] = ['selinux', 'network-map', 'openshift'].map(build);
    for (const name of [FULL, DPU_HOST]) {
      assert.equal(selinux?.(name).securityContext.seLinuxOptions?.type, 'spc_t');
      const { config, mounts } = mapped!(name);
      assert.ok(mounts.some((path) => config.networkMap?.startsWith(path)));
      assert.equal(config.mode, name === FULL ? 'full' : 'dpu-host');
    }
    assert.deepEqual(openshift?.(FULL).securityContext.capabilities.add, ['SYS_NICE', 'DAC_OVERRIDE']);
    assert.deepEqual(openshift?.(DPU_HOST).securityContext.capabilities.add, ['SYS_NICE']);
  });
});
