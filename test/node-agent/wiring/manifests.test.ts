import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { parseNodeAgentConfig } from '../../../node-agent/wiring/config.ts';
import { root } from '../../support/bundles.ts';
import { needs, pathOf } from '../../support/parts.ts';
import { tempDirectories } from '../support.ts';

interface DaemonSet {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly hostPID?: boolean;
        readonly affinity: unknown;
        readonly containers: readonly {
          readonly args?: string[];
          readonly securityContext: {
            readonly capabilities: { readonly drop: string[]; readonly add?: string[] };
            readonly seccompProfile: { readonly type: string };
            readonly seLinuxOptions?: { readonly type: string };
            readonly allowPrivilegeEscalation: boolean;
            readonly readOnlyRootFilesystem: boolean;
          };
          readonly volumeMounts: readonly { readonly mountPath: string }[];
        }[];
      };
    };
  };
}

describe('the agent’s manifests', () => {
  needs('kubectl');
  const temp = tempDirectories();

  /** The DaemonSets of the base with one component, by name. */
  const build = (component?: string): Map<string, DaemonSet> => {
    const directory = temp();
    cpSync(join(root, 'manifests'), join(directory, 'manifests'), { recursive: true });
    const components = component === undefined ? '[]' : `[manifests/base/node-agent/components/${component}]`;
    writeFileSync(
      join(directory, 'kustomization.yaml'),
      `kind: Kustomization\nresources: [manifests/base]\ncomponents: ${components}\n`,
    );
    const yaml = execFileSync(pathOf('kubectl'), ['kustomize', directory], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const objects = parseAllDocuments(yaml).map((document) => document.toJS() as DaemonSet);
    const daemonSets = objects.filter(({ kind }) => kind === 'DaemonSet');
    return new Map(daemonSets.map((object) => [object.metadata.name, object]));
  };
  const podOf = (sets: Map<string, DaemonSet>, name: string) => sets.get(name)!.spec.template.spec;
  const FULL = 'plumbline-node-agent';
  const DPU_HOST = 'plumbline-node-agent-dpu-host';

  it('give the host’s process table, cgroups and one capability only to the duties that need them', () => {
    const sets = build();
    const full = podOf(sets, FULL);
    const dpuHost = podOf(sets, DPU_HOST);
    assert.deepEqual([full.hostPID, dpuHost.hostPID], [true, true]);
    for (const { containers } of [full, dpuHost]) {
      assert.deepEqual(containers[0]?.securityContext.capabilities, { drop: ['ALL'], add: ['SYS_NICE'] });
      const { cgroupRoot } = parseNodeAgentConfig([...(containers[0]?.args ?? []), '--node-name', 'worker-0']);
      assert.ok(containers[0]?.volumeMounts.some(({ mountPath }) => mountPath === cgroupRoot));
      const { seccompProfile, allowPrivilegeEscalation, readOnlyRootFilesystem } = containers[0]!.securityContext;
      assert.deepEqual(
        [seccompProfile.type, allowPrivilegeEscalation, readOnlyRootFilesystem],
        ['RuntimeDefault', false, true],
      );
    }
    assert.ok(!dpuHost.containers[0]?.volumeMounts.some(({ mountPath }) => mountPath.includes('openvswitch')));
  });

  it('select different nodes', () => {
    const sets = build();
    assert.match(JSON.stringify(podOf(sets, FULL).affinity), /dpu-host","operator":"DoesNotExist/);
    assert.match(JSON.stringify(podOf(sets, DPU_HOST).affinity), /dpu-host","operator":"Exists/);
  });

  it('with the gate, have its flags and mounts for its files', () => {
    const installed = (component: string, name: string) => {
      const [container] = podOf(build(component), name).containers;
      const config = parseNodeAgentConfig([...(container?.args ?? []), '--node-name', 'worker-0']);
      const mounts = container?.volumeMounts.map(({ mountPath }) => mountPath) ?? [];
      const places = [config.cniConfDir, config.cniBinDir, config.runDir];
      return { config, writes: places.every((path) => mounts.includes(path)) };
    };
    const vacating = installed('gate', FULL);
    assert.deepEqual([vacating.config.gate, vacating.config.gateStatus, vacating.writes], ['on', 'off', true]);
    assert.equal(installed('gate', DPU_HOST).config.gate, 'off');
    for (const component of ['dpu', 'dpu-observe']) {
      const { config, writes } = installed(component, DPU_HOST);
      const { mode, gate, gateStatus, dpuLease } = config;
      const lease = component === 'dpu' ? 'own' : 'observe';
      assert.deepEqual([mode, gate, gateStatus, dpuLease, writes], ['dpu-host', 'on', 'on', lease, true]);
      assert.equal(installed(component, FULL).config.gate, 'off');
    }
  });

  it('work with SELinux, on OpenShift, and with a network map', () => {
    for (const name of [FULL, DPU_HOST]) {
      const [container] = podOf(build('selinux'), name).containers;
      assert.equal(container?.securityContext.seLinuxOptions?.type, 'spc_t');
      const [mapped] = podOf(build('network-map'), name).containers;
      const config = parseNodeAgentConfig([...(mapped?.args ?? []), '--node-name', 'worker-0']);
      assert.ok(mapped?.volumeMounts.some(({ mountPath }) => config.networkMap?.startsWith(mountPath)));
      assert.equal(config.mode, name === FULL ? 'full' : 'dpu-host');
    }
    const openshift = build('openshift');
    assert.deepEqual(podOf(openshift, FULL).containers[0]?.securityContext.capabilities.add, [
      'SYS_NICE',
      'DAC_OVERRIDE',
    ]);
    assert.deepEqual(podOf(openshift, DPU_HOST).containers[0]?.securityContext.capabilities.add, ['SYS_NICE']);
  });
});
