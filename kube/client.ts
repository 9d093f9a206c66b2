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
export function isNotFound(error: unknown): boolean {
  return error instanceof KubeError && error.status === 404;
}

/** Whether the server no longer has the version to watch or to page from (410): list again. */
export function isExpired(error: unknown): boolean {
  return error instanceof KubeError && error.status === 410;
}

/** Whether a creation failed because the object exists (409, reason AlreadyExists). */
export function isAlreadyExists(error: unknown): boolean {
  return error instanceof KubeError && error.reason === 'AlreadyExists';
}

/** Whether another client wrote first (409, reason Conflict): read the object and decide again. */
export function isConflict(error: unknown): boolean {
  return error instanceof KubeError && error.status === 409 && error.reason !== 'AlreadyExists';
}
