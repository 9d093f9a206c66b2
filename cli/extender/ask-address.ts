import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { readText } from '../../kube/calls.ts';
import { MAX_CREDENTIAL_BYTES, readInput } from '../../runtime/input-file.ts';
import { CliError, EXIT, usageError } from '../support/exit-status.ts';

/** The address of an extender from the user, instead of the one found through the API server. */
export interface ExtenderAddress {
  /** --extender */
  readonly url: string;
  /** --extender-ca */
  readonly caFile?: string | undefined;
}

/** Timeout in seconds; it usually responds in a few hundred milliseconds. */
const DEADLINE = 5;

/**
 * Queries `GET /explain` about a pod. The request contains no secrets, and over a port-forward the certificate's name
 * never matches: the certificate is only verified if the user gives a CA.
 * @param pod namespace/name
 * @throws CliError if the address is malformed or does not respond
 */
export async function askAddress({ url: text, caFile }: ExtenderAddress, pod: string): Promise<unknown> {
  const url = explainUrl(text);
  url.searchParams.set('pod', pod);
  const ca = caFile === undefined ? undefined : readCa(caFile);
  const tls = ca === undefined ? { rejectUnauthorized: false } : { ca, checkServerIdentity: () => undefined };
  const failed = (why: string) => new CliError(EXIT.unreachable, `cannot ask the extender at ${url.origin}: ${why}`);
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const options = { ...(url.protocol === 'https:' && tls), signal: AbortSignal.timeout(DEADLINE * 1000) };
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      send(url, options, resolve).on('error', reject).end();
    });
    const answer = await readText(response);
    if (response.statusCode !== 200) throw failed(answer.trim().split('\n')[0] || `${response.statusCode}`);
    return JSON.parse(answer) as unknown;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw failed(error instanceof SyntaxError ? 'the answer is not JSON' : (error as Error).message);
  }
}

/** The URL of /explain. @throws CliError if the text is not the address of an extender */
export function explainUrl(extender: string): URL {
  let url: URL;
  try {
    url = new URL(`${extender.replace(/\/+$/, '')}/explain`);
  } catch {
    throw usageError(`--extender ${extender}: expected a URL such as https://localhost:9443`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw usageError(`--extender ${extender}: expected a URL that begins with https:// or http://`);
  }
  return url;
}

function readCa(file: string): Buffer {
  try {
    return readInput(file, MAX_CREDENTIAL_BYTES);
  } catch (error) {
    throw usageError(`--extender-ca ${file}: ${(error as Error).message}`);
  }
}
