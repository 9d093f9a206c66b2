import type { JsonObject, KubeObject } from '../objects.ts';
import type { ResourceType } from './resource-types.ts';

/** The part of each object that a Table contains in addition to the cells. */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Whether a client requests a Table: the first supported media type of its Accept header decides. */
export function wantsTable(accept: string | undefined): boolean {
  for (const part of (accept ?? '').split(',')) {
    const [media, ...parameters] = part.split(';').map((text) => text.trim());
    if (media !== 'application/json' && media !== '*/*') continue;
    const given = new Map(parameters.map((text) => text.split('=', 2) as [string, string]));
    const as = given.get('as');
    if (as === undefined) return false;
    if (as === 'Table' && given.get('g') === 'meta.k8s.io' && given.get('v') === 'v1') return true;
  }
  return false;
}

/** Objects as a Table, for kubectl. */
export function tableOf(
  type: ResourceType,
  objects: readonly KubeObject[],
  metadata: JsonObject,
  include: IncludeObject,
  now: number,
): JsonObject {
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: type.columns.map(({ name, type: kind = 'string', priority = 0 }) => ({
      name,
      type: kind,
      format: name === 'Name' ? 'name' : '',
      description: '',
      priority,
    })),
    rows: objects.map((object) => ({
      cells: type.columns.map((column) => column.cell(object, now)),
      ...(include !== 'None' && { object: include === 'Object' ? object : partial(object) }),
    })),
  };
}

function partial({ metadata }: KubeObject): JsonObject {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}
