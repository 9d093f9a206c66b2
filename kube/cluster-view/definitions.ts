import { type NadFacts, nadFacts } from '../../model/networks/nad.ts';
import type { NetworkAttachmentDefinition } from '../resources.ts';

const API = '/apis/k8s.cni.cncf.io/v1';

/** @param namespace undefined: all */
export function definitionsPath(namespace?: string): string {
  const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${API}${scope}/network-attachment-definitions`;
}

/** A definition, reduced to the fields that classify it; without those that are absent. */
export function definitionFacts({ metadata, spec }: NetworkAttachmentDefinition): NadFacts {
  const { main, ...facts } = nadFacts({ metadata, spec: { config: spec?.config } });
  if (typeof main === 'string') return { ...facts, main };
  const fields = Object.entries(main).filter(([, value]) => value !== undefined);
  return { ...facts, main: Object.fromEntries(fields) as typeof main };
}
