import assert from 'node:assert/strict';
import { assertEvictable, evictionDenial } from '../../../sandbox/api-server/subresources.ts';
import type { KubePod, KubeVmi } from '../../../sandbox/objects.ts';

interface Case {
  /** Undefined: the VMI is deleted. */
  readonly strategy?: string;
  readonly migratable?: true;
  readonly node?: string;
  readonly phase?: string;
  readonly label?: string;
}

const MIGRATABLE = { strategy: 'LiveMigrate', migratable: true } as const;

/** KubeVirt, pod-eviction-admitter.go: by strategy, whether the guest can migrate, and the owner of the launcher. */
const CASES: readonly [name: string, Case, denied?: RegExp][] = [
  ['LiveMigrate, never started', { strategy: 'LiveMigrate' }, /not live-migratable/],
  ['LiveMigrate, running', MIGRATABLE, /triggered evacuation of VMI "default\/vm"/],
  ['LiveMigrateIfPossible, never started', { strategy: 'LiveMigrateIfPossible' }],
  ['the target of a migration', { ...MIGRATABLE, node: 'n2' }, /Eviction request for target Pod/],
  ['an ended launcher', { strategy: 'LiveMigrate', phase: 'Failed' }],
  ['a pod that is not a launcher', { strategy: 'LiveMigrate', label: 'web' }],
  ['a launcher whose VMI is deleted', {}, /virtualmachineinstances "vm" not found/],
];

describe('sandbox: evictions, decided as by virt-api', () => {
  for (const [name, { strategy, migratable, ...options }, denied] of CASES) {
    it(`${name}: ${denied === undefined ? 'allowed' : 'denied'}`, () => {
      const { node = 'n1', phase = 'Running', label = 'virt-launcher' } = options;
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
