import { status } from '@grpc/grpc-js';
import { PlumblineError } from '../../model/errors.ts';

/** Why a call to the kubelet, or from it to a plugin, failed. The values are metric labels. */
export type KubeletApiCode =
  | 'unavailable'
  | 'deadline'
  | 'exhausted'
  | 'cancelled'
  | 'not-found'
  | 'unimplemented'
  | 'refused'
  | 'failed';

const CODES: Readonly<Partial<Record<number, KubeletApiCode>>> = {
  [status.UNAVAILABLE]: 'unavailable',
  [status.DEADLINE_EXCEEDED]: 'deadline',
  [status.RESOURCE_EXHAUSTED]: 'exhausted',
  [status.CANCELLED]: 'cancelled',
  [status.NOT_FOUND]: 'not-found',
  [status.UNIMPLEMENTED]: 'unimplemented',
  [status.FAILED_PRECONDITION]: 'refused',
};

/** A failed call over one of the kubelet's sockets, with the method, the socket and the message of the other side. */
export class KubeletApiError extends PlumblineError {
  declare readonly code: KubeletApiCode;

  constructor(method: string, socketPath: string, cause: { readonly code?: number; readonly details?: string }) {
    const code = CODES[cause.code ?? status.UNKNOWN] ?? 'failed';
    super(code, `${method} on ${socketPath}: ${explain(code, cause.details ?? '')}`, { cause });
  }
}

function explain(code: KubeletApiCode, details: string): string {
  switch (code) {
    case 'unavailable':
      return `no answer (${details}); check that the kubelet runs and that its directory is mounted here`;
    case 'deadline':
      return 'no answer in time; the socket accepts connections but the call hangs';
    case 'exhausted':
      return `the kubelet limits how often it may be asked (${details})`;
    default:
      return details || code;
  }
}
