import type { JsonRecord, KubeObject } from '../objects.ts';
import type { ResourceType } from './built-in-types.ts';

export type IncludeObject = 'None' | 'Metadata' | 'Object';

/** Whether a client requests a Table: the first supported media type of its Accept header decides. */
export function wantsTable(accept: string | undefined): boolean {
  for (const part of (accept ?? '').split(',')) {
    const [media, ...parameters] = part.split(';').map((text) => text.trim());
    if (media !== 'application/json' && media !== '*/*') continue;
    const parameterValues = new Map(parameters.map((text) => text.split('=', 2) as [string, string]));
    const as = parameterValues.get('as');
    if (as === undefined) return false;
    if (as === 'Table' && parameterValues.get('g') === 'meta.k8s.io' && parameterValues.get('v') === 'v1') return true;
  }
  return false;
}

export function tableOf(
  type: ResourceType,
  objects: readonly KubeObject[],
  metadata: JsonRecord,
  include: IncludeObject,
): JsonRecord {
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
      cells: type.columns.map((column) => column.cell(object, Date.now())),
      ...(include !== 'None' && { object: include === 'Object' ? object : partial(object) }),
    })),
  };
}

function partial({ metadata }: KubeObject): JsonRecord {
  return { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata };
}

export function includeOf(query: URLSearchParams): IncludeObject {
  const include = query.get('includeObject');
  return include === 'None' || include === 'Object' ? include : 'Metadata';
}
