import assert from 'node:assert/strict';
import { interceptEviction } from '../../sandbox/api-server/subresources.ts';
import type { KubePod, KubeVmi } from '../../sandbox/objects.ts';

const META = { namespace: 'default', uid: 'u', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };

function launcher(more: { phase?: string; node?: string; labels?: Record<string, string> } = {}): KubePod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...META,
      name: 'virt-launcher-vm-x',
      labels: more.labels ?? { 'kubevirt.io': 'virt-launcher' },
      annotations: { 'kubevirt.io/domain': 'vm' },
    },
    spec: { nodeName: more.node ?? 'n1', containers: [] },
    status: { phase: more.phase ?? 'Running' },
  } as unknown as KubePod;
}

function vmi(evictionStrategy: string, migratable: boolean): KubeVmi {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...META, name: 'vm' },
    spec: { evictionStrategy },
    status: { nodeName: 'n1', conditions: migratable ? [{ type: 'LiveMigratable', status: 'True' }] : [] },
  } as unknown as KubeVmi;
}

/** KubeVirt, pod-eviction-admitter.go: by strategy, whether the guest can migrate, and the owner of the launcher. */
const CASES: readonly {
  readonly name: string;
  readonly pod?: KubePod;
  readonly vmi?: KubeVmi;
  readonly denied?: RegExp;
}[] = [
  { name: 'LiveMigrate, never started', vmi: vmi('LiveMigrate', false), denied: /not live-migratable/ },
  { name: 'LiveMigrate, running', vmi: vmi('LiveMigrate', true), denied: /triggered evacuation of VMI "default\/vm"/ },
  { name: 'LiveMigrateIfPossible, never started', vmi: vmi('LiveMigrateIfPossible', false) },
  {
    name: 'the target of a migration',
    pod: launcher({ node: 'n2' }),
    vmi: vmi('LiveMigrate', true),
    denied: /Eviction request for target Pod/,
  },
  { name: 'an ended launcher', pod: launcher({ phase: 'Failed' }), vmi: vmi('LiveMigrate', false) },
  { name: 'a pod that is not a launcher', pod: launcher({ labels: {} }), vmi: vmi('LiveMigrate', false) },
  { name: 'a launcher whose VMI is deleted', denied: /virtualmachineinstances "vm" not found/ },
];

describe('sandbox: evictions, decided as by virt-api', () => {
  for (const { name, pod = launcher(), vmi: found, denied } of CASES) {
    it(`${name}: ${denied === undefined ? 'allowed' : 'denied'}`, () => {
      const evict = () => interceptEviction(pod, () => found);
      if (denied === undefined) return assert.doesNotThrow(evict);
      assert.throws(evict, (error: Error & { http?: number }) => error.http === 429 && denied.test(error.message));
    });
  }
});
