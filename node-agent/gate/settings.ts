import { join } from 'node:path';
import * as z from 'zod';

/** The gate's part of the agent's settings. */
export const gateSettings = {
  gate: z.enum(['on', 'off', 'remove']).default('off'),
  gateStatus: z.enum(['on', 'off']).default('off'),
} as const;

export const gateFlags = {
  gate: {
    flag: '--gate <policy>',
    help: 'on: install the CNI gate before the primary network and answer it (nodes with a DPU, or an Open vSwitch that must leave CPUs before any pod starts); off: remove its configuration; remove: uninstall it from the node',
  },
  gateStatus: {
    flag: '--gate-status <policy>',
    help: 'on: the CNI verb STATUS reports a dead DPU, so the node turns NotReady and Kubernetes evicts its pods later; off: only new pods are refused',
  },
} as const;

export function gateFilesIn(runDir: string) {
  return {
    socket: join(runDir, 'gate.sock'),
    /** What the CNI plugin uses while the agent does not answer. */
    state: join(runDir, 'gate.state'),
  };
}
