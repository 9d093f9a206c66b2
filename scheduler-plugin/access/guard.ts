import type { Socket } from 'node:net';
import type { Request, RequestHandler } from 'express';
import type { PodAttributes } from './reviews.ts';
import type { TokenAccess } from './token-access.ts';

export interface GuardOptions {
  /** Whether the client of a connection presented an accepted certificate. */
  readonly isKnown: (socket: Socket) => boolean;
  readonly access: TokenAccess;
}

const BEARER = /^Bearer ([A-Za-z0-9._~+/=-]{1,8192})$/i;
const POD = /^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)$/;

const REFUSALS = {
  certificate: [401, 'a client certificate is required (--client-ca-file, --client-names)'],
  token: [401, 'a client certificate or a bearer token is required'],
  unauthenticated: [401, 'the API server does not accept the token'],
  denied: [403, 'the user of the token may not read the pod'],
  deniedAll: [403, 'the user of the token may not list the pods of all namespaces'],
  busy: [429, 'too many tokens were reviewed in the last seconds; try again'],
  unavailable: [503, 'the API server did not review the token; try again'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/**
 * Admits clients with a certificate to all routes, and clients with a bearer token to /explain if they may read the
 * pods that it shows. It sends a refusal before it reads any of the body, and closes the connection.
 */
export function createGuard({ isKnown, access }: GuardOptions): RequestHandler {
  const refusalOf = async (request: Request): Promise<keyof typeof REFUSALS | undefined> => {
    if (request.path !== '/explain') return 'certificate';
    const [, token] = BEARER.exec(request.headers.authorization ?? '') ?? [];
    if (token === undefined) return 'token';
    const attributes = attributesOf(request);
    const review = await access.review(token, attributes);
    if (review === 'allowed') return undefined;
    return review === 'denied' && attributes.verb === 'list' ? 'deniedAll' : review;
  };

  return async (request, response, next) => {
    if (isKnown(request.socket)) return next();
    const refusal = await refusalOf(request);
    if (refusal === undefined) return next();
    const [status, message] = REFUSALS[refusal];
    const text = `plumbline: ${message}\n`;
    if (status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
    response.writeHead(status, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': Buffer.byteLength(text),
      Connection: 'close',
    });
    response.end(text);
  };
}

/**
 * A pod in the cluster requires `get` on it. The last decisions, and a pod that need not exist, require `list` on all
 * pods. It reads the query as the route does, so that both mean the same pod.
 */
function attributesOf({ method, query }: Request): PodAttributes {
  const { pod } = query;
  const [, namespace, name] = (typeof pod === 'string' && POD.exec(pod)) || [];
  if (method !== 'GET' || namespace === undefined || name === undefined) return { verb: 'list' };
  return { verb: 'get', namespace, name };
}
