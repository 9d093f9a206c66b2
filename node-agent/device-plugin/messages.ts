import type { HostDescription } from '../../model/host.ts';
import type { LogLevel } from '../../runtime/log.ts';
import type { AllocationCheckPolicy } from './allocation-checker.ts';
import type { AdvertisedResource } from './resources.ts';

/** The start parameters of the device plugin's thread. */
export interface PluginThreadData {
  readonly kubeletDir: string;
  readonly host: HostDescription;
  readonly policy: AllocationCheckPolicy;
  readonly logLevel: LogLevel;
  /** Maximum seconds that a container's start waits for the agent's main thread. */
  readonly answerWithin: number;
}

export type ToPluginThread =
  /** The resources to advertise from now on. */
  | { readonly kind: 'resources'; readonly resources: readonly AdvertisedResource[]; readonly wholeCoresOnly: boolean }
  /** The answer to `before-start`: the container may start, or the reason why not. */
  | { readonly kind: 'answer'; readonly call: number; readonly refusal: string | undefined }
  | { readonly kind: 'stop' };

/** A DeviceHolder with its CPUs as a list. */
export interface HolderMessage {
  readonly namespace: string;
  readonly podName: string;
  readonly container: string;
  readonly cpus: string;
}

export type FromPluginThread =
  /** A container is about to be created. Without `holder` its owner is unknown. */
  | {
      readonly kind: 'before-start';
      readonly call: number;
      readonly resource: string;
      readonly holder: HolderMessage | undefined;
    }
  | { readonly kind: 'registered'; readonly resource: string; readonly outcome: 'registered' | 'failed' }
  | { readonly kind: 'pre-start'; readonly resource: string; readonly outcome: 'passed' | 'refused' | 'unanswered' };
