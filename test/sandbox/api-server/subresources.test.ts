import assert from 'node:assert/strict';
import { assertEvictable, evictionDenial } from '../../../sandbox/api-server/subresources.ts';
import type { KubePod, KubeVmi } from '../../../sandbox/objects.ts';

interface Case {
  readonly name: string;
  /** Undefined: the VMI is deleted. */
  readonly strategy?: string;
  readonly migratable?: true;
  readonly node?: string;
  readonly phase?: string;
  readonly label?: string;
  readonly denied?: RegExp;
}

/** KubeVirt, pod-eviction-admitter.go: by strategy, whether the guest can migrate, and the owner of the launcher. */
const CASES: readonly Case[] = [
  { name: 'LiveMigrate, never started', strategy: 'LiveMigrate', denied: /not live-migratable/ },
  {
    name: 'LiveMigrate, running',
    strategy: 'LiveMigrate',
    migratable: true,
    denied: /triggered evacuation of VMI "default\/vm"/,
  },
  { name: 'LiveMigrateIfPossible, never started', strategy: 'LiveMigrateIfPossible' },
  {
    name: 'the target of a migration',
    strategy: 'LiveMigrate',
    migratable: true,
    node: 'n2',
    denied: /Eviction request for target Pod/,
  },
  { name: 'an ended launcher', strategy: 'LiveMigrate', phase: 'Failed' },
  { name: 'a pod that is not a launcher', strategy: 'LiveMigrate', label: 'web' },
  { name: 'a launcher whose VMI is deleted', denied: /virtualmachineinstances "vm" not found/ },
];

describe('sandbox: evictions, decided as by virt-api', () => {
  for (const { name, strategy, migratable, node = 'n1', phase = 'Running', label = 'virt-launcher', denied } of CASES) {
    it(`${name}: ${denied === undefined ? 'allowed' : 'denied'}`, () => {
      const metadata = { labels: { 'kubevirt.io': label }, annotations: { 'kubevirt.io/domain': 'vm' } };
      const pod = { metadata, spec: { nodeName: node, containers: [] }, status: { phase } } as unknown as KubePod;
      const conditions = migratable ? [{ type: 'LiveMigratable', status: 'True' }] : [];
      const vmi = {
        metadata: { namespace: 'default', name: 'vm' },
        spec: { evictionStrategy: strategy },
        status: { nodeName: 'n1', conditions },
      } as unknown as KubeVmi;
      const evict = () => assertEvictable(evictionDenial(pod, () => (strategy === undefined ? undefined : vmi)));
      if (denied === undefined) return assert.doesNotThrow(evict);
      assert.throws(evict, (error: Error & { http?: number }) => error.http === 429 && denied.test(error.message));
    });
  }
});
