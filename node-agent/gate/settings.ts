import * as z from 'zod';
import { GATE_PLUGIN } from '../../model/cni/conflist.ts';
import { quote } from '../../model/errors.ts';
import { DPU_EXEMPT_NAMESPACES } from '../../model/names.ts';

const absolute = z.string().startsWith('/', 'expected an absolute path');
/** One that the CNI plugin takes out of its settings as it stands. */
const plain = absolute.regex(/^[^"\\\p{Cc}]*$/u, 'a quote, a backslash or a control character does not belong');

/** Members of a list, at most: the state file holds the namespaces, and the CNI plugin reads 16 KiB of it. */
const MOST_MEMBERS = 128;

/** A list with commas between its members; empty text is an empty list. */
const list = (member: z.ZodType<string>) =>
  z.string().transform((text, context): readonly string[] => {
    const members = text.split(',', MOST_MEMBERS + 1).flatMap((one) => one.trim() || []);
    if (members.length > MOST_MEMBERS)
      context.addIssue({ code: 'custom', message: `more than ${MOST_MEMBERS} members` });
    const wrong = members.find((one) => !member.safeParse(one).success);
    if (wrong !== undefined) context.addIssue({ code: 'custom', message: `${quote(wrong)} does not belong` });
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

/** What is compiled into the CNI plugin as well. */
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

/** How they look to the person who starts the agent. */
export const gateFlags = {
  gate: { flag: '--gate <policy>', help: 'on: answer the CNI gate; off; remove: take it away from the node' },
  gateSocket: { flag: '--gate-socket <path>', help: 'where the CNI plugin asks' },
  gateState: { flag: '--gate-state <path>', help: 'what the CNI plugin goes by while the agent does not answer' },
  gateStatus: {
    flag: '--gate-status <policy>',
    help: 'on: the CNI verb STATUS tells of a dead DPU; the node turns NotReady, and in the end its pods are evicted',
  },
  gateScope: { flag: '--gate-scope <scope>', help: 'which pods hang on the DPU: all, or those with a device of it' },
  gateDevices: {
    flag: '--gate-devices <resources>',
    help: 'the DPU’s resources, for --gate-scope device; none named: every device but Plumbline’s markers',
  },
  gateExempt: {
    flag: '--gate-exempt <namespaces>',
    help: 'whose pods are never held back; `openshift-*` is all that begin so',
  },
  gateStaleAfter: { flag: '--gate-stale-after <seconds>', help: 'age at which the state file counts as stale' },
  gateWhenStale: { flag: '--gate-when-stale <policy>', help: 'of a stale state file: last-known, open or closed' },
  gateWhenAbsent: { flag: '--gate-when-absent <policy>', help: 'with neither agent nor state file: open or closed' },
  gateForm: {
    flag: '--gate-form <form>',
    help: 'in a list of plugins: chained before them, or a wrapper around the first; a lone plugin is wrapped in any case',
  },
  gateAtEnd: {
    flag: '--gate-at-end <policy>',
    help: 'what becomes of the gate’s configuration when the agent stops: remove, or keep it for the next one',
  },
  gateShim: { flag: '--gate-shim <path>', help: 'the CNI plugin to be installed' },
  gateInterpose: {
    flag: '--gate-interpose <plugins>',
    help: 'plugins to stand before by name, in --gate-interpose-dir',
  },
  gateInterposeDir: {
    flag: '--gate-interpose-dir <path>',
    help: 'a directory that CNI_PATH has before the plugins’ own',
  },
  cniConfDir: {
    flag: '--cni-conf-dir <path>',
    help: 'the runtime’s network configurations; given: the gate is installed there, before the primary',
  },
  cniBinDir: { flag: '--cni-bin-dir <path>', help: 'the runtime’s CNI plugins' },
  dpuUnknown: {
    flag: '--dpu-unknown <policy>',
    help: 'what a DPU counts as while the API server cannot be asked: ready or not-ready',
  },
} as const;

interface GateChoice {
  readonly gate: 'on' | 'off' | 'remove';
  readonly cniConfDir?: string | undefined;
}

/** Rules between the gate's settings. @returns what is wrong */
export function checkGate({ gate, cniConfDir }: GateChoice): string | undefined {
  if (gate === 'remove' && cniConfDir === undefined)
    return '--gate remove needs --cni-conf-dir: without it nothing is known of where the gate was put';
  return undefined;
}
