import { KubeError } from '../../kube/errors.ts';
import { PlumblineError } from '../../model/errors.ts';
import { CliError, EXIT, type ExitStatus } from './exit-status.ts';

/** How a command ends that threw: one line, and the status. */
export interface Ending {
  readonly line: string;
  readonly status: ExitStatus;
}

/** What a user is told of anything that was thrown. Only what nobody foresaw ends with 1. */
export function endingOf(error: unknown): Ending {
  if (error instanceof CliError) return { line: error.message, status: error.status };
  if (error instanceof KubeError) return { line: kubeLine(error), status: EXIT.unreachable };
  if (error instanceof PlumblineError) {
    // A kubeconfig that cannot be used is a cluster that cannot be asked.
    return { line: oneLine(error.message), status: error.code === 'config' ? EXIT.unreachable : EXIT.findings };
  }
  return { line: oneLine(error instanceof Error ? error.message : String(error)), status: EXIT.findings };
}

/** What an answer of the API server, or none, means to the user, with what to do about it. */
export function kubeLine(error: KubeError): string {
  const { status, reason, message } = error;
  if (reason === 'BadAnswer') return `${oneLine(message)}; is the server of the kubeconfig an API server?`;
  if (status === 0) return unreachableLine(error);
  if (status === 401) return `the cluster does not know you (401): log in again, or choose another user with --context`;
  if (status === 403)
    return `not allowed: ${oneLine(afterStatus(message))}; ask for the permissions in docs/reference/cli-doctor.md`;
  if (status === 410) return 'the cluster changed faster than it could be read; try again';
  return oneLine(message);
}

/** By the error's code, which Node has for what happens to sockets and certificates. */
const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing listens there; is the cluster running, and is --context the right one?'],
  [/ENOTFOUND|EAI_AGAIN/, 'its name is not known here; check the server in the kubeconfig, and the VPN'],
  [
    /ETIMEDOUT|TimeoutError|aborted due to timeout/,
    'it does not answer in time; check the network, or give --request-timeout',
  ],
  [/EHOSTUNREACH|ENETUNREACH/, 'there is no way to it; check the network'],
  [/CERT_HAS_EXPIRED|certificate has expired/, 'its certificate has expired'],
  [
    /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|self-signed|unable to verify/,
    'its certificate is of another authority than the kubeconfig says',
  ],
  [/ERR_TLS_CERT_ALTNAME/, 'its certificate is for another name'],
];

function unreachableLine(error: KubeError): string {
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  // Credentials that could not be renewed, say: nothing was sent.
  if (cause instanceof CliError) return cause.message;
  const text = `${cause?.code ?? ''} ${cause?.name ?? ''} ${causeText(cause)} ${error.message}`;
  const known = CAUSES.find(([pattern]) => pattern.test(text))?.[1];
  return `cannot reach the cluster (${oneLine(causeText(cause) || error.message)}): ${known ?? 'check the server in the kubeconfig'}`;
}

/** A connection tried over several addresses fails with one error for each, and a message of its own that is empty. */
function causeText(cause: Error | undefined): string {
  const [first] = cause instanceof AggregateError ? (cause.errors as Error[]) : [];
  return first?.message ?? cause?.message ?? '';
}

/** The server's own text, which follows `GET /path: 403 Forbidden: `. */
function afterStatus(message: string): string {
  return /: \d{3} \w+: (.*)$/s.exec(message)?.[1] ?? message;
}

export function oneLine(text: string): string {
  return text.replaceAll(/\s*\n\s*/g, ' ').trim();
}
