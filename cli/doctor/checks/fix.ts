import { NAMESPACE, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { type Command, kubectl, type Remedy } from '../../../model/vm-state/remedy.ts';

/** The next step for a finding: text, and commands that show or apply it. */
export type Fix = Pick<Remedy, 'text' | 'commands'>;

export const fix = (text: string, ...commands: readonly Command[]): Fix => ({ text, commands });

/** `kubectl` in plumbline-system. */
export const inSystem = (...args: readonly string[]): Command => kubectl('-n', NAMESPACE, ...args);

/** Disables all of Plumbline's webhooks until the manifests are applied again. */
export const BREAK_GLASS = fix(
  'if VMs must start before it is fixed, without Plumbline, switch its webhooks off',
  inSystem('delete', 'rolebinding', WEBHOOK_REQUIRED),
);

/** Installs, or restores changed objects. */
export const APPLY = fix('apply the manifests', kubectl('apply', '--server-side', '-k', 'manifests/base'));
