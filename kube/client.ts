import type { RequestOptions as HttpsOptions } from 'node:https';
import { PlumblineError } from '../model/errors.ts';

export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml';

export interface RequestOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly signal?: AbortSignal | undefined;
  /** Seconds for the whole exchange. Default 10. A watch has no limit here: see followWatch. */
  readonly timeout?: number;
  /** Largest response in bytes; a larger one is a KubeError `TooLarge`. Default 16 MiB. */
  readonly largest?: number;
}

/** Calls to the API server, by path: `/api/v1/nodes/worker-0`. Bodies are decoded JSON; check them with a schema. */
export interface KubeClient {
  get(path: string, options?: RequestOptions): Promise<unknown>;
  create(path: string, body: object, options?: RequestOptions): Promise<unknown>;
  replace(path: string, body: object, options?: RequestOptions): Promise<unknown>;
  patch(path: string, type: PatchType, body: object, options?: RequestOptions): Promise<unknown>;
  delete(path: string, options?: RequestOptions & { readonly body?: object }): Promise<unknown>;
  /** Opens a watch and returns its bytes as they arrive; ends with the server, the signal or `close`. */
  watch(path: string, options: RequestOptions): Promise<AsyncIterable<Uint8Array>>;
  /** Milliseconds that the server's clock is ahead of this machine's, by its last response. Absent or 0: unknown. */
  readonly clockOffset?: () => number;
  close(): Promise<void>;
}

/** An error response, or none (`status` 0). The message never contains the object that was sent. */
export class KubeError extends PlumblineError {
  readonly status: number;
  /** `reason` of the Status object: NotFound, AlreadyExists, Conflict, Forbidden, Expired … */
  readonly reason: string;

  constructor(status: number, reason: string, message: string, options?: ErrorOptions) {
    super('kube', message, options);
    this.status = status;
    this.reason = reason;
  }
}

/** Whether the API server answered 404: the object or its kind does not exist. */
export const isNotFound = (error: unknown): boolean => error instanceof KubeError && error.status === 404;

/** Whether the server no longer has the version to watch or to page from (410): list again. */
export const isExpired = (error: unknown): boolean => error instanceof KubeError && error.status === 410;

/** Whether a creation failed because the object exists (409, reason AlreadyExists). */
export const isAlreadyExists = (error: unknown): boolean =>
  error instanceof KubeError && error.reason === 'AlreadyExists';

/** Whether another client wrote first (409, reason Conflict): read the object and decide again. */
export const isConflict = (error: unknown): boolean =>
  error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists';

/** The address of the API server and the credentials of requests to it. */
export interface ApiAccess {
  /** `https://10.96.0.1:443`, without a slash at its end. */
  readonly server: string;
  /** Called for each request, because tokens are replaced while a process runs. */
  readonly requestOptions: () => ApiConnectionOptions | Promise<ApiConnectionOptions>;
}

export interface ApiConnectionOptions
  extends Pick<
    HttpsOptions,
    'ca' | 'cert' | 'key' | 'rejectUnauthorized' | 'servername' | 'checkServerIdentity' | 'auth' | 'agent'
  > {
  readonly headers?: Readonly<Record<string, string>>;
}

/** The access of a daemon: a service account, or a kubeconfig set by a flag. */
export interface DaemonAccess extends ApiAccess {
  /** The current bearer token; the kubelet replaces it every hour. Undefined: there is none. */
  readonly token: () => string | undefined;
  /** The file that holds the token; undefined if a kubeconfig contains the token itself or there is none. */
  readonly tokenFile: string | undefined;
}
