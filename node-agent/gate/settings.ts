import * as z from 'zod';
import { GATE_PLUGIN } from '../../model/cni/conflist.ts';
import { quote } from '../../model/errors.ts';
import { DPU_EXEMPT_NAMESPACES } from '../../model/names.ts';

const absolute = z.string().startsWith('/', 'expected an absolute path');
/** A path that the CNI plugin reads from its settings without unescaping. */
const plain = absolute.regex(/^[^"\\\p{Cc}]*$/u, 'remove the quote, backslash or control character');

/** Maximum members of a list: the state file contains the namespaces, and the CNI plugin reads 16 KiB of it. */
const MOST_MEMBERS = 128;

/** A comma-separated list; empty text is an empty list. */
const list = (member: z.ZodType<string>) =>
  z.string().transform((text, context): readonly string[] => {
    const members = text.split(',', MOST_MEMBERS + 1).flatMap((one) => one.trim() || []);
    if (members.length > MOST_MEMBERS)
      context.addIssue({ code: 'custom', message: `expected at most ${MOST_MEMBERS} members` });
    const wrong = members.find((one) => !member.safeParse(one).success);
    if (wrong !== undefined) context.addIssue({ code: 'custom', message: `${quote(wrong)} is not a valid member` });
    return members;
  });
const namespaces = list(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$|^[a-z0-9][-a-z0-9]{0,61}\*$/));
const resources = list(z.string().regex(/^[-a-zA-Z0-9_.]+\/[-a-zA-Z0-9_.]+$/));
const plugins = list(
  z
    .string()
    .regex(/^[-a-zA-Z0-9_.]*[a-zA-Z0-9][-a-zA-Z0-9_.]*$/)
    .refine((name) => name !== GATE_PLUGIN),
);

/** These defaults are compiled into the CNI plugin, too. */
const SOCKET = '/run/plumbline/gate.sock';
const STATE = '/run/plumbline/gate.state';

/** The gate's part of the agent's settings. */
export const gateSettings = {
  gate: z.enum(['on', 'off', 'remove']).default('off'),
  gateSocket: plain.max(107, 'a socket’s path has at most 107 bytes').default(SOCKET),
  gateState: plain.max(1023, 'a path of at most 1023 bytes').default(STATE),
  gateStatus: z.enum(['on', 'off']).default('off'),
  gateScope: z.enum(['all', 'device']).default('all'),
  gateDevices: resources.prefault(''),
  gateExempt: namespaces.prefault(DPU_EXEMPT_NAMESPACES.join()),
  gateStaleAfter: z.coerce.number().min(1).max(86_400).default(60),
  gateWhenStale: z.enum(['last-known', 'open', 'closed']).default('last-known'),
  gateWhenAbsent: z.enum(['open', 'closed']).default('open'),
  gateForm: z.enum(['chained', 'wrapper']).default('chained'),
  gateAtEnd: z.enum(['remove', 'keep']).default('remove'),
  gateShim: absolute.default('/usr/local/bin/plumbline-gate'),
  gateInterpose: plugins.prefault(''),
  gateInterposeDir: absolute.default('/opt/plumbline/cni/bin'),
  cniConfDir: absolute.optional(),
  cniBinDir: absolute.default('/opt/cni/bin'),
  dpuUnknown: z.enum(['ready', 'not-ready']).default('ready'),
} as const;

/** Their flags and help. */
export const gateFlags = {
  gate: { flag: '--gate <policy>', help: 'on: answer the CNI gate; off; remove: uninstall it from the node' },
  gateSocket: { flag: '--gate-socket <path>', help: 'socket that the CNI plugin connects to' },
  gateState: { flag: '--gate-state <path>', help: 'file that the CNI plugin uses while the agent does not answer' },
  gateStatus: {
    flag: '--gate-status <policy>',
    help: 'on: the CNI verb STATUS reports a dead DPU; the node turns NotReady, and Kubernetes evicts its pods later',
  },
  gateScope: { flag: '--gate-scope <scope>', help: 'which pods depend on the DPU: all, or those with a device of it' },
  gateDevices: {
    flag: '--gate-devices <resources>',
    help: 'the DPU’s resources, for --gate-scope device; default: every device except Plumbline’s markers',
  },
  gateExempt: {
    flag: '--gate-exempt <namespaces>',
    help: 'namespaces whose pods always start; `openshift-*` matches by prefix',
  },
  gateStaleAfter: { flag: '--gate-stale-after <seconds>', help: 'age at which the state file counts as stale' },
  gateWhenStale: {
    flag: '--gate-when-stale <policy>',
    help: 'policy for a stale state file: last-known, open or closed',
  },
  gateWhenAbsent: { flag: '--gate-when-absent <policy>', help: 'policy without agent and state file: open or closed' },
  gateForm: {
    flag: '--gate-form <form>',
    help: 'position in a list of plugins: chained before them, or a wrapper around the first; a single plugin is always wrapped',
  },
  gateAtEnd: {
    flag: '--gate-at-end <policy>',
    help: 'when the agent stops: remove the gate’s configuration, or keep it for the next agent',
  },
  gateShim: { flag: '--gate-shim <path>', help: 'the CNI plugin to install' },
  gateInterpose: {
    flag: '--gate-interpose <plugins>',
    help: 'plugins that the gate replaces by name, in --gate-interpose-dir',
  },
  gateInterposeDir: {
    flag: '--gate-interpose-dir <path>',
    help: 'a directory that precedes the plugins’ own in CNI_PATH',
  },
  cniConfDir: {
    flag: '--cni-conf-dir <path>',
    help: 'the runtime’s network configurations; if set, the agent installs the gate there, before the primary',
  },
  cniBinDir: { flag: '--cni-bin-dir <path>', help: 'the runtime’s CNI plugins' },
  dpuUnknown: {
    flag: '--dpu-unknown <policy>',
    help: 'state of a DPU while the API server does not answer: ready or not-ready',
  },
} as const;

interface GateChoice {
  readonly gate: 'on' | 'off' | 'remove';
  readonly cniConfDir?: string | undefined;
}

/** Checks the gate's settings against each other. @returns the problem, or undefined */
export function checkGate({ gate, cniConfDir }: GateChoice): string | undefined {
  if (gate === 'remove' && cniConfDir === undefined)
    return '--gate remove needs --cni-conf-dir: name the directory where the gate is installed';
  return undefined;
}
