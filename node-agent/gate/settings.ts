import { join } from 'node:path';
import * as z from 'zod';

const absolute = z.string().startsWith('/', 'expected an absolute path');

/** Bytes of a path to a unix socket, without its last byte, and of the longest file name in the agent's directory. */
const MAX_SOCKET_PATH_BYTES = 107;
const GATE_STATE_FILE = 'gate.state';
const GATE_SOCKET_FILE = 'gate.sock';

/** The gate's part of the agent's settings. The default of `runDir` is compiled into the CNI plugin, too. */
export const gateSettings = {
  gate: z.enum(['on', 'off', 'remove']).default('off'),
  gateStatus: z.enum(['on', 'off']).default('off'),
  cniConfDir: absolute.default('/etc/cni/net.d'),
  cniBinDir: absolute.default('/opt/cni/bin'),
  runDir: absolute
    .max(MAX_SOCKET_PATH_BYTES - GATE_STATE_FILE.length - 1, 'too long for the path of a socket')
    .default('/run/plumbline'),
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
  cniConfDir: {
    flag: '--cni-conf-dir <path>',
    help: 'the runtime’s network configurations, where a distribution moved them',
  },
  cniBinDir: { flag: '--cni-bin-dir <path>', help: 'the runtime’s CNI plugins, where a distribution moved them' },
  runDir: {
    flag: '--run-dir <path>',
    help: 'directory of the gate’s socket and state, for several agents on one machine; set PLUMBLINE_RUN_DIR of the runtime to the same',
  },
} as const;

export function gateFilesIn(runDir: string) {
  return {
    socket: join(runDir, GATE_SOCKET_FILE),
    /** What the CNI plugin uses while the agent does not answer. */
    state: join(runDir, GATE_STATE_FILE),
  };
}
