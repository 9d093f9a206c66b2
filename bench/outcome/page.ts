export function writeOutcome(): void {}
