import { type Cause, cause, type MigrationFacts, type VmFacts } from './facts.ts';
import { placeAgain, remedy, virtctl } from './remedies.ts';

export type MigrationInProgress = Exclude<MigrationFacts['progress'], 'succeeded' | 'failed' | 'cancelled'>;

export interface MigrationState {
  /**
   * `requested`: a drain asks for it; `pending`: its target has no launcher; `scheduling`: the launcher has no node;
   * `preparing`: it starts; `retrying`: the last migration failed, and a drain waits for another.
   */
  readonly phase: 'requested' | 'scheduling' | 'preparing' | 'retrying' | MigrationInProgress;
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
  const cancel = remedy(
    'cancel-migration',
    'or cancel the migration: the VM keeps running where it is',
    virtctl('migrate-cancel', facts.name, '-n', facts.namespace),
  );
  if (waits !== undefined) {
    const text = `on ${source}; its migration${to} waits for its target: ${waits.text}`;
    return cause('MigrationWaits', text, ...waits.remedies, cancel);
  }
  if (phase === 'retrying') {
    const text = `its last migration failed${because}; KubeVirt tries it again, because it is asked to leave ${source}`;
    return cause('MigrationWaits', `on ${source}; ${text}`);
  }
  if (phase === 'pending' && message) {
    const text = `KubeVirt cannot create the launcher of its migration’s target: ${message}`;
    return cause('MigrationWaits', `on ${source}; ${text}`, cancel);
  }
  const texts = {
    requested: `on ${source}; it is asked to leave ${source}, and KubeVirt has not started its migration yet`,
    pending: `on ${source}; it migrates, and KubeVirt has not created the target’s launcher yet`,
    scheduling: `on ${source}; it migrates, and its target has no node yet`,
    preparing: `on ${source}; it migrates to ${target}, where its launcher starts`,
    copying: `on ${source}; it migrates to ${target ?? 'another node'}: its memory is being copied`,
    'post-copy': `on ${target ?? 'its target'}, and fetches the rest of its memory from ${source} (post-copy)`,
    cancelling: `on ${source}; its migration${to} is being cancelled`,
  };
  return cause('Migrating', texts[phase]);
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
    const help = remedy('restart', 'restart it at a suitable time', ...(kind === 'vmi' ? [] : [again]));
    causes.push(cause('RestartRequired', text, help));
  }
  if (changes.length > 0) {
    const text = `it runs without changes that take effect with its next migration: ${changes.join(', ')}`;
    const migrate = virtctl('migrate', name, '-n', namespace);
    const help = remedy('migrate', 'migrate it, unless KubeVirt does (workloadUpdateMethods: LiveMigrate)', migrate);
    causes.push(cause('ChangePending', text, instance?.notMigratable === undefined ? help : placeAgain(facts)));
  }
  return causes;
}

export function failedMigration({ migration }: VmFacts, node: string): Cause[] {
  if (migration?.progress !== 'failed') return [];
  const because = migration.message ? `: ${migration.message}` : '';
  return [cause('MigrationFailed', `its last migration failed${because}; it stays on ${node}`)];
}
