import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { Explanation } from '../../../cli/explain/explain.ts';
import { plumbline } from '../../cli/run.ts';
import { KUBEVIRT } from '../../kubevirt/install-strategy-fixture.ts';
import { NAMESPACE, unlessNotFound } from '../cluster.ts';
import type { Scene } from '../scenarios/scenario.ts';

const PATH = `/apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstancemigrations`;
const MERGE = 'application/merge-patch+json';
/** The command costs the emulation a fifth of a second. */
const POLL_MILLISECONDS = 1000;

export async function migrate({ cluster }: Scene, vmiName: string, name: string): Promise<void> {
  const metadata = { name, namespace: NAMESPACE };
  const migration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata,
    spec: { vmiName },
  };
  await cluster.client.create(PATH, migration);
}

export async function cancelMigration({ cluster }: Scene, name: string): Promise<void> {
  await cluster.client.delete(`${PATH}/${name}`).catch(unlessNotFound);
}

export async function migrationPhase({ cluster }: Scene, name: string): Promise<string> {
  const found = await cluster.client.get(`${PATH}/${name}`).catch(unlessNotFound);
  return (found as { status?: { phase?: string } } | undefined)?.status?.phase ?? '';
}

export async function limitBandwidth({ cluster }: Scene, bandwidth: string | null): Promise<void> {
  const spec = { configuration: { migrations: { bandwidthPerMigration: bandwidth } } };
  await cluster.client.patch(`/apis/kubevirt.io/v1/namespaces/${KUBEVIRT}/kubevirts/kubevirt`, MERGE, { spec });
}

export async function explained({ lab }: Scene, name: string): Promise<Explanation> {
  const args = ['explain', 'vm', name, '-n', NAMESPACE, '-o', 'json'];
  const { status, stdout, stderr } = await plumbline(args, { kubeconfig: lab.kubeconfig() });
  assert.equal(stderr, '', `explain ended with ${status}`);
  return JSON.parse(stdout) as Explanation;
}

/** In a line: `running on lab-0 (Aligned)`, `migrating, copying, lab-0 to lab-1 (Migrating)`. */
export function stateLine({ state, reason, node, migration, faults = [] }: Explanation): string {
  const place = migration === undefined ? `on ${node}` : `${migration.source} to ${migration.target ?? 'no node'}`;
  const phase = migration === undefined ? '' : `, ${migration.phase},`;
  const waits = migration?.waits === undefined ? '' : `, target: ${migration.waits}`;
  const lacks = faults.length === 0 ? '' : `, without ${faults.join(', ')}`;
  return `${state}${phase} ${place} (${reason}${waits}${lacks})`;
}

/** States in their order, of which an emulation may skip some; the first and the last must be seen. */
export function assertStates(lines: readonly string[], inOrder: readonly string[]): void {
  const inTime = lines.filter((line) => !/AgentSilent|ContainerWaiting/.test(line));
  const seen = inTime.filter((line, i) => line !== inTime[i - 1]);
  let place = -1;
  for (const line of seen) {
    place = inOrder.indexOf(line, place + 1);
    assert.ok(place >= 0, `${line}, among ${seen.join('; ')}`);
  }
  assert.deepEqual([seen[0], seen.at(-1)], [inOrder[0], inOrder.at(-1)]);
}

export function watchStates(scene: Scene, name: string) {
  const lines: string[] = [];
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const line = await explained(scene, name).then(stateLine, (error: Error) => `no state: ${error.message}`);
      if (line !== lines.at(-1)) lines.push(line);
      await delay(POLL_MILLISECONDS);
    }
  })();
  const stop = async () => {
    isOver = true;
    await watching;
  };
  scene.undo(stop);
  return { lines: (): readonly string[] => lines, stop };
}
