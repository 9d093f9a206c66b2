import type { JsonObject } from '../../../model/json.ts';
import {
  KubeletConfigError,
  kubeletConfigOf,
  type NodeKubeletConfig,
} from '../../../node-agent/host/kubelet-config.ts';
import { documentOf } from '../../../node-agent/host/kubelet-config-files.ts';

/** A single file without drop-ins and flags, in the steps of the agent's reader. */
export function parseKubeletConfig(file: string, text: string): NodeKubeletConfig {
  let settings: JsonObject;
  try {
    settings = documentOf(text);
  } catch (error) {
    throw new KubeletConfigError(file, (error as Error).message, { cause: error });
  }
  return kubeletConfigOf(file, settings);
}
