import { KINDS, type Kind, type OptionalKind } from '../../console/server/kinds.ts';
import { isNotFound, type KubeClient, KubeError } from '../../kube/client.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { notInstalled } from '../support/lists.ts';

/** @returns the optional kinds without read permission @throws CliError naming the required ones; KubeError */
export async function unreadableKinds(client: Pick<KubeClient, 'get'>): Promise<ReadonlySet<OptionalKind>> {
  const kinds = await Promise.all(
    (Object.keys(KINDS) as Kind[]).map(async (kind) => ({ kind, isForbidden: await isForbidden(client, kind) })),
  );
  const forbidden = kinds.filter((kind) => kind.isForbidden).map(({ kind }) => kind);
  const required = forbidden.filter((kind) => !KINDS[kind].optional);
  if (required.length > 0) {
    const names = required.map((kind) => KINDS[kind].resource).join(', ');
    throw new CliError(
      EXIT.unreachable,
      `not allowed to list ${names}: ask for list and watch of each (docs/reference/console.md)`,
    );
  }
  return new Set(forbidden as OptionalKind[]);
}

async function isForbidden(client: Pick<KubeClient, 'get'>, kind: Kind): Promise<boolean> {
  try {
    await client.get(KINDS[kind].path, { query: { limit: 1 } });
    return false;
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return true;
    if (!isNotFound(error)) throw error;
    // A kind that this cluster does not have counts as a kind without objects.
    if (kind !== 'nodetopologies') return false;
    throw notInstalled(error);
  }
}
