import assert from 'node:assert/strict';
import { KubeError } from '../../../kube/client.ts';
import { DpuRecovery } from '../../../scheduler-plugin/controllers/dpu-recovery.ts';
import type { PodWithoutNetwork } from '../../../scheduler-plugin/controllers/dpu-restarts.ts';
import { recordingLogger } from '../../support/logger.ts';
import { vmiOwner } from '../../support/vmi-owner.ts';

const RESTART = { kind: 'reboot', at: '2026-11-29T10:00:00Z' } as const;
const SECOND = Date.parse(RESTART.at) / 1000;

interface Migration {
  readonly metadata: { readonly name: string; readonly labels?: object };
  readonly spec: { readonly vmiName: string };
  status?: { readonly phase: string };
}

/** KubeVirt's objects of all namespaces. */
class World {
  readonly migrations = new Map<string, Migration[]>();
  readonly instances = new Map<string, object[]>();
  readonly events: string[] = [];
  readonly logged = recordingLogger();
  refused = new Set<string>();
  readonly recovery = new DpuRecovery({
    client: {
      get: async (path: string) => ({ metadata: { resourceVersion: '1' }, items: this.#list(path) }),
      create: async (path: string, object: unknown) => {
        const migration = object as Migration;
        if (this.refused.has(migration.spec.vmiName)) throw new KubeError(409, 'Conflict', 'in-flight migration');
        this.#list(path).push(migration);
        return object;
      },
    } as never,
    events: { record: ({ name }, { reason }) => void this.events.push(`${name} ${reason}`) },
    log: this.logged.log,
  });

  #list(path: string): object[] {
    const [, namespace = '', kind] = /namespaces\/([^/]+)\/(\w+)$/.exec(path) ?? [];
    const all: Map<string, object[]> = kind === 'virtualmachineinstances' ? this.instances : this.migrations;
    const list = all.get(namespace) ?? [];
    all.set(namespace, list);
    return list;
  }

  vmi(namespace: string, name: string, { node = 'n1', migratable = 'True' } = {}): PodWithoutNetwork {
    const conditions = [{ type: 'LiveMigratable', status: migratable }];
    const instance = { metadata: { name, uid: `vmi-${name}` }, status: { nodeName: node, conditions } };
    this.instances.set(namespace, [...(this.instances.get(namespace) ?? []), instance]);
    const labels = { 'kubevirt.io': 'virt-launcher' };
    const ownerReferences = [vmiOwner(name, `vmi-${name}`)];
    const metadata = { namespace, name: `virt-launcher-${name}`, uid: `pod-${name}`, labels, ownerReferences };
    return { metadata, spec: { containers: [{ name: 'compute' }] }, status: { phase: 'Running' } } as never;
  }

  asked = (namespace: string) => (this.migrations.get(namespace) ?? []).map(({ spec }) => spec.vmiName);
}

describe('the migration of VMs that lost their network', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });
  const migrate = (...launchers: PodWithoutNetwork[]) => world.recovery.migrate('n1', RESTART, launchers);
  const fail = (namespace: string) => {
    for (const migration of world.migrations.get(namespace) ?? []) migration.status ??= { phase: 'Failed' };
  };

  it('is one at a time in each namespace, and one for each launcher', async () => {
    const launchers = [world.vmi('x', 'a'), world.vmi('x', 'b'), world.vmi('y', 'c')];
    await migrate(...launchers);
    await migrate(...launchers);
    assert.deepEqual([world.asked('x'), world.asked('y')], [['a'], ['c']]);
    assert.equal(world.migrations.get('x')?.[0]?.metadata.name, `plumbline-dpu-pod-a-${SECOND}`);
    fail('x');
    for (let i = 0; i < 3; i++) await migrate(...launchers);
    assert.deepEqual([world.asked('x'), world.asked('y')], [['a', 'b'], ['c']]);
    assert.deepEqual(world.events, ['a DPURecovery', 'c DPURecovery', 'b DPURecovery']);
  });

  it('is one at a time also for two nodes at once', async () => {
    const [first, second] = [world.vmi('x', 'a'), world.vmi('x', 'b', { node: 'n2' })];
    await Promise.all([migrate(first), world.recovery.migrate('n2', RESTART, [second])]);
    assert.deepEqual(world.asked('x'), ['a']);
  });

  it('is asked again after another restart', async () => {
    const launcher = world.vmi('x', 'a');
    await migrate(launcher);
    fail('x');
    await world.recovery.migrate('n1', { ...RESTART, at: '2026-11-29T11:00:00Z' }, [launcher]);
    assert.deepEqual(world.asked('x'), ['a', 'a']);
  });

  it('leaves out VMs that cannot migrate, have left, migrate already, or that KubeVirt refuses', async () => {
    world.migrations.set('x', [{ metadata: { name: 'own' }, spec: { vmiName: 'busy' } }]);
    world.refused = new Set(['refused']);
    const others = ['busy', 'refused', 'other'].map((name) => world.vmi('x', name));
    await migrate(world.vmi('x', 'fixed', { migratable: 'False' }), world.vmi('x', 'left', { node: 'n2' }), ...others);
    assert.deepEqual(world.asked('x'), ['busy', 'other']);
    const [line] = world.logged.lines;
    assert.deepEqual([line?.msg, line?.['vmi']], ['migrating a VM failed; retrying', 'x/refused']);
  });
});
