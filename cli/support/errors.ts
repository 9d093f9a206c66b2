import { KubeError } from '../../kube/client.ts';
import { PlumblineError } from '../../model/errors.ts';
import { CliError, EXIT, type ExitStatus } from './exit-status.ts';

/** A request to a cluster failed: which one, in the words of the kubeconfig. */
export class ClusterError extends PlumblineError {
  declare readonly cause: KubeError;
  readonly clusterText: string;

  constructor(cause: KubeError, clusterText: string) {
    super('cluster', cause.message, { cause });
    this.clusterText = clusterText;
  }
}

/** The message and status for anything that was thrown. Only an unexpected error ends with 1. */
export function endingOf(error: unknown): { readonly line: string; readonly status: ExitStatus } {
  if (error instanceof CliError) return { line: error.message, status: error.status };
  if (error instanceof ClusterError) {
    return { line: `${kubeLine(error.cause)} (${error.clusterText})`, status: EXIT.unreachable };
  }
  if (error instanceof KubeError) return { line: kubeLine(error), status: EXIT.unreachable };
  if (error instanceof PlumblineError) {
    // An unusable kubeconfig is an unreachable cluster.
    return { line: oneLine(error.message), status: error.code === 'config' ? EXIT.unreachable : EXIT.findings };
  }
  return { line: oneLine(error instanceof Error ? error.message : String(error)), status: EXIT.findings };
}

/** The meaning of a failed request for the user, with the next step. */
function kubeLine(error: KubeError): string {
  const { status, reason, message } = error;
  if (reason === 'BadAnswer') return `${oneLine(message)}; check that the server in the kubeconfig is an API server`;
  if (status === 0) return unreachableLine(error);
  if (status === 401)
    return `the API server rejects the credentials (401): log in again, or choose another context with --context`;
  if (status === 403)
    return `not allowed: ${oneLine(afterStatus(message))}; ask for the permissions in docs/reference/cli-doctor.md`;
  if (status === 410) return 'the list expired while it was read, because the cluster changes fast; try again';
  return oneLine(message);
}

const CAUSES: readonly (readonly [RegExp, string])[] = [
  [/ECONNREFUSED/, 'nothing listens there; check that the cluster runs and that --context is right'],
  [/ENOTFOUND|EAI_AGAIN/, 'the host name does not resolve; check the server in the kubeconfig, DNS and the VPN'],
  [
    /ETIMEDOUT|TimeoutError|aborted due to timeout/,
    'it does not answer in time; check the network, or raise --request-timeout',
  ],
  [/EHOSTUNREACH|ENETUNREACH/, 'there is no route to it; check the network'],
  [/CERT_HAS_EXPIRED|certificate has expired/, 'its certificate has expired; renew it'],
  [
    /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|self-signed|unable to verify/,
    'a CA that is not in the kubeconfig issued its certificate; check certificate-authority there',
  ],
  [/ERR_TLS_CERT_ALTNAME/, 'its certificate is for another name; check the server in the kubeconfig'],
];

function unreachableLine(error: KubeError): string {
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  // For example, credentials that could not be renewed: no request was sent.
  if (cause instanceof PlumblineError) return oneLine(cause.message);
  const text = `${cause?.code ?? ''} ${cause?.name ?? ''} ${causeText(cause)} ${error.message}`;
  const advice = CAUSES.find(([pattern]) => pattern.test(text))?.[1];
  return `cannot reach the cluster (${oneLine(causeText(cause) || error.message)}): ${advice ?? 'check the server in the kubeconfig'}`;
}

/** A connection to several addresses fails with one error for each and an empty message. */
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
