import type { Finding } from '../../../model/errors.ts';
import type { nadFacts } from '../../../model/networks/nad.ts';
import type { ResolvedNetwork } from '../../../model/networks/resolve.ts';

export const EAST = 'physnet.plumbline.dev/east';

const REQUIRED = { role: 'secondary', affinity: 'required' } as const;

/** A required secondary interface on the physnet east. */
export function network(more: Partial<Extract<ResolvedNetwork, { kind: 'physnet' }>> = {}): ResolvedNetwork {
  return { ...REQUIRED, kind: 'physnet', physnet: 'east', name: 'net1', network: 'ns/east', ...more };
}

export const TUNNEL: ResolvedNetwork = { ...REQUIRED, kind: 'tunnel', name: 'net2', network: 'ns/over' };
export const BRIDGE: ResolvedNetwork = { ...TUNNEL, kind: 'none', name: 'net3', network: 'ns/bridge' };

/** A definition with this configuration. */
export function nad(config: unknown, annotations?: Readonly<Record<string, string>>): Parameters<typeof nadFacts>[0] {
  return {
    metadata: annotations ? { annotations } : {},
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  };
}

export const codesOf = (findings: readonly Finding[]) => findings.map(({ code }) => code);
