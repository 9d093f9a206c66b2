import type { Cause, VmFacts } from './facts.ts';
import { placeAgain, type Remedy, remedy, virtctl } from './remedies.ts';

export interface MigrationState {
  /**
   * `requested`: a drain asks for it; `pending`: its target has no launcher; `scheduling`: the launcher has no node;
   * `preparing`: it starts; `retrying`: the last migration failed, and a drain waits for another.
   */
  readonly phase:
    | 'requested'
    | 'pending'
    | 'scheduling'
    | 'preparing'
    | 'copying'
    | 'post-copy'
    | 'cancelling'
    | 'retrying';
  readonly source: string;
  /** Its node. */
  readonly target?: string | undefined;
  /** Of its VirtualMachineInstanceMigration. */
  readonly name?: string | undefined;
  /** The uid of the target's launcher. */
  readonly launcher?: string | undefined;
  /** Why the target does not start. */
  readonly waits?: Cause | undefined;
}

export function migrationCause(facts: VmFacts, migration: MigrationState): Cause {
  const { phase, source, target, waits } = migration;
  const { message } = facts.migration ?? {};
  const because = message ? `: ${message}` : '';
  const to = target === undefined ? '' : ` to ${target}`;
  const goesOn = (text: string): Cause => ({ reason: 'Migrating', text, remedies: [] });
  const stuck = (text: string, remedies: readonly Remedy[] = []): Cause => ({
    reason: 'MigrationWaits',
    text: `on ${source}; ${text}`,
    remedies: [...remedies, ...(phase === 'retrying' ? [] : [cancelMigration(facts)])],
  });
  if (waits !== undefined) return stuck(`its migration${to} waits for its target: ${waits.text}`, waits.remedies);
  switch (phase) {
    case 'requested':
      return goesOn(`on ${source}; it is asked to leave ${source}, and KubeVirt has not started its migration yet`);
    case 'retrying':
      return stuck(
        `its last migration failed${because}; KubeVirt tries it again, because it is asked to leave ${source}`,
      );
    case 'pending':
      return message
        ? stuck(`KubeVirt cannot create the launcher of its migration’s target: ${message}`)
        : goesOn(`on ${source}; it migrates, and KubeVirt has not created the target’s launcher yet`);
    case 'scheduling':
      return goesOn(`on ${source}; it migrates, and its target has no node yet`);
    case 'preparing':
      return goesOn(`on ${source}; it migrates to ${target}, where its launcher starts`);
    case 'copying':
      return goesOn(`on ${source}; it migrates to ${target ?? 'another node'}: its memory is being copied`);
    case 'post-copy':
      return goesOn(`on ${target ?? 'its target'}, and fetches the rest of its memory from ${source} (post-copy)`);
    case 'cancelling':
      return goesOn(`on ${source}; its migration${to} is being cancelled`);
  }
}

function cancelMigration({ name, namespace }: VmFacts): Remedy {
  return remedy(
    'cancel-migration',
    'or cancel the migration: the VM keeps running where it is',
    virtctl('migrate-cancel', name, '-n', namespace),
  );
}

/** Changes of a running VM that it does not have yet. */
export function pendingChanges(facts: VmFacts): Cause[] {
  const { machine, instance, name, namespace, kind } = facts;
  const restart = machine?.restartRequired;
  const changes = instance?.changes ?? [];
  const causes: Cause[] = [];
  if (restart !== undefined) {
    const again = virtctl('restart', name, '-n', namespace);
    const text = `it runs without changes that need a restart${restart === '' ? '' : `: ${restart}`}`;
    const remedies = [remedy('restart', 'restart it at a suitable time', ...(kind === 'vmi' ? [] : [again]))];
    causes.push({ reason: 'RestartRequired', text, remedies });
  }
  if (changes.length > 0) {
    const text = `it runs without changes that take effect with its next migration: ${changes.join(', ')}`;
    const migrate = virtctl('migrate', name, '-n', namespace);
    const help = remedy('migrate', 'migrate it, unless KubeVirt does (workloadUpdateMethods: LiveMigrate)', migrate);
    const remedies = [instance?.notMigratable === undefined ? help : placeAgain(facts)];
    causes.push({ reason: 'ChangePending', text, remedies });
  }
  return causes;
}

export function failedMigration({ migration }: VmFacts, node: string): Cause[] {
  if (migration?.progress !== 'failed') return [];
  const { message } = migration;
  const text = `its last migration failed${message ? `: ${message}` : ''}; it stays on ${node}`;
  return [{ reason: 'MigrationFailed', text, remedies: [] }];
}
