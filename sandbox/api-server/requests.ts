import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'yaml';
import { readText } from '../../kube/calls.ts';
import { KubeError } from '../../kube/client.ts';
import { isRecord, type JsonRecord, type JsonValue, type KubePod } from '../objects.ts';
import { type DeleteOptions, FIELD_VALIDATIONS, type FieldValidation, type User } from './call.ts';
import { ApiError, badRequest } from './errors.ts';
import type { Registry } from './registry.ts';
import type { ApiRoute } from './routes.ts';
import { fieldSelector, labelSelector, type Predicate } from './selectors.ts';
import type { Store } from './store.ts';

const MAX_BODY_BYTES = 3 * 1024 * 1024;

export const contentType = (request: IncomingMessage) =>
  (request.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase();

export async function readBody(request: IncomingMessage): Promise<JsonValue> {
  const text = await readText(request, MAX_BODY_BYTES).catch((error: unknown) => {
    if (!(error instanceof KubeError)) throw error;
    throw new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`);
  });
  if (text === '') return null;
  const type = contentType(request);
  if (type.includes('protobuf') || type.includes('cbor')) {
    const instead = 'add --dry-run=client -o yaml to this kubectl command, and pipe it to: kubectl apply -f -';
    const message = `the embedded API server reads JSON and YAML, not ${type}: ${instead}`;
    throw new ApiError(415, 'UnsupportedMediaType', message);
  }
  try {
    return (type.includes('yaml') ? parse(text) : JSON.parse(text)) as JsonValue;
  } catch (error) {
    throw badRequest(`the object provided is unrecognized: ${(error as Error).message}`, { cause: error });
  }
}

export function sendJson(response: ServerResponse, status: number, body: JsonRecord): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length });
  response.end(bytes);
}

/** A Warning header's value: code 299, no agent, the text quoted (RFC 7234). */
export function warningHeader(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters may not stand in a header
  const clean = text.replace(/[\u0000-\u001f\u007f]+/g, ' ').replace(/["\\]/g, '\\$&');
  return `299 - "${Buffer.from(clean, 'utf8').toString('latin1')}"`;
}

export interface HandlerDeps {
  readonly store: Store;
  readonly registry: Registry;
  readonly bookmarkSeconds: number;
  readonly stopping: AbortSignal;
  readonly processes: ContainerProcesses | undefined;
}

/** Processes of this machine that stand for containers. */
export interface ContainerProcesses {
  /** The port on this machine for a port of the pod; undefined: nothing listens. */
  localPort(pod: KubePod, port: number): number | undefined;
  /** The file with the log of a container; undefined: no process of this machine stands for it. */
  logFile(pod: KubePod, container: string): string | undefined;
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly route: ApiRoute;
  readonly user: User;
}

export function readDryRun(query: URLSearchParams): boolean {
  const values = query.getAll('dryRun');
  const wrong = values.find((value) => value !== 'All');
  if (wrong !== undefined) throw unsupported('dryRun', wrong, ['All']);
  return values.length > 0;
}

export function readFieldValidation(query: URLSearchParams): FieldValidation | undefined {
  const value = query.get('fieldValidation') ?? '';
  const validation = FIELD_VALIDATIONS.find((name) => name === value);
  if (value !== '' && validation === undefined) throw unsupported('fieldValidation', value, FIELD_VALIDATIONS);
  return validation;
}

function unsupported(option: string, value: string, supported: readonly string[]): ApiError {
  const values = supported.map((name) => JSON.stringify(name)).join(', ');
  return badRequest(`${option}: Unsupported value: ${JSON.stringify(value)}: supported values: ${values}`);
}

export function readSelectors({ query, route }: Exchange): Predicate {
  const labels = labelSelector(query.get('labelSelector') ?? '');
  const fields = fieldSelector(route.type, query.get('fieldSelector') ?? '');
  return (object) => labels(object) && fields(object);
}

export async function readDeleteOptions({ request, query }: Exchange): Promise<DeleteOptions> {
  const body = await readBody(request);
  const grace = query.get('gracePeriodSeconds');
  return {
    ...(grace !== null && { gracePeriodSeconds: Number(grace) }),
    ...(isRecord(body) && (body as DeleteOptions)),
  };
}
