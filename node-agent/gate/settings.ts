import { join } from 'node:path';
import * as z from 'zod';
import { quote } from '../../model/errors.ts';
import { DPU_EXEMPT_NAMESPACES } from '../../model/names.ts';

const absolute = z.string().startsWith('/', 'expected an absolute path');

/** Bytes of a path to a unix socket, without its last byte, and of the longest file name in the agent's directory. */
const MAX_SOCKET_PATH_BYTES = 107;
const GATE_STATE_FILE = 'gate.state';
const GATE_SOCKET_FILE = 'gate.sock';

/** Maximum members of a list: the state file contains the namespaces, and the CNI plugin reads 16 KiB of it. */
const MAX_NAMESPACES = 128;

const exemptNamespace = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$|^[a-z0-9][-a-z0-9]{0,61}\*$/);

/** Namespaces separated by commas; empty text is an empty list. */
const namespaces = z.string().transform((text, context): readonly string[] => {
  const members = text.split(',', MAX_NAMESPACES + 1).flatMap((member) => member.trim() || []);
  if (members.length > MAX_NAMESPACES)
    context.addIssue({ code: 'custom', message: `expected at most ${MAX_NAMESPACES} members` });
  const wrong = members.find((member) => !exemptNamespace.safeParse(member).success);
  if (wrong !== undefined) context.addIssue({ code: 'custom', message: `${quote(wrong)} is not a valid member` });
  return members;
});

/** The gate's part of the agent's settings. The default of `runDir` is compiled into the CNI plugin, too. */
export const gateSettings = {
  gate: z.enum(['on', 'off', 'remove']).default('off'),
  gateStatus: z.enum(['on', 'off']).default('off'),
  gateScope: z.enum(['all', 'device']).default('all'),
  gateExempt: namespaces.prefault(DPU_EXEMPT_NAMESPACES.join()),
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
  gateScope: {
    flag: '--gate-scope <scope>',
    help: 'pods that depend on the DPU: all, or device where the pod network does not use the DPU: pods with a device of it',
  },
  gateExempt: {
    flag: '--gate-exempt <namespaces>',
    help: 'namespaces whose pods always start, because they repair the node; `openshift-*` matches by prefix',
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
