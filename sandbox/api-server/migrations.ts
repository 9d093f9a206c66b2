import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import type { KubeMigration, KubeObject, KubeVmi } from '../objects.ts';
import { collectionOf, MIGRATIONS, type ResourceType, VIRTUAL_MACHINE_INSTANCES } from './built-in-types.ts';
import { ApiError, notFoundError } from './errors.ts';
import type { Store } from './store.ts';

const MIGRATION_WEBHOOK = 'admission webhook "migration-create-validator.kubevirt.io"';
const VMI_NAME_LABEL = 'kubevirt.io/vmi-name';
export const MIGRATION_FINALIZER = 'kubevirt.io/migrationJobFinalize';

/** virt-api's webhooks for the creation of a migration. @throws ApiError 422 or 404 if the instance cannot migrate now */
export function admitMigration(store: Store, type: ResourceType, created: KubeObject): void {
  if (type.kind !== MIGRATIONS.kind) return;
  const { metadata, spec } = created as KubeMigration;
  const { namespace = 'default' } = metadata;
  const { vmiName } = spec;
  const refuse = (why: string) => new ApiError(422, 'Invalid', `${MIGRATION_WEBHOOK} denied the request: ${why}`);
  const vmi = store.get(collectionOf(VIRTUAL_MACHINE_INSTANCES), `${namespace}/${vmiName}`) as KubeVmi | undefined;
  if (vmi === undefined) throw notFoundError(VIRTUAL_MACHINE_INSTANCES, vmiName);
  if (isFinalPhase(vmi.status?.phase)) throw refuse('Cannot migrate VMI in finalized state.');
  const unable = vmi.status?.conditions?.find(({ type, status }) => type === 'LiveMigratable' && status === 'False');
  if (unable) throw refuse(`Cannot migrate VMI, Reason: ${unable.reason}, Message: ${unable.message}`);
  const migrations = store.list(collectionOf(MIGRATIONS)) as KubeMigration[];
  const active = migrations.find((migration) => {
    return migration.metadata.namespace === namespace && migration.spec.vmiName === vmiName && isActive(migration);
  });
  if (active !== undefined) {
    const which = `Active migration job (${active.metadata.name}) is currently already in progress for VMI ${vmiName}.`;
    throw refuse(`in-flight migration detected. ${which}`);
  }
  metadata.labels = { ...metadata.labels, [VMI_NAME_LABEL]: vmiName };
  metadata.finalizers = [...new Set([...(metadata.finalizers ?? []), MIGRATION_FINALIZER])];
}

export function isActive({ status }: KubeMigration): boolean {
  return !isFinalPhase(status?.phase);
}
