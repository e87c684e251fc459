/** Short names of the types of `/api/v1`. The types are generated from the service's OpenAPI document into openapi.ts
 *  (`make contract`). Times are RFC 3339 in UTC; null is "not reported", never 0. */

import type { components } from "./openapi.ts";

type Schemas = components["schemas"];

export type Advice = Schemas["Advice"];
export type Alert = Schemas["AlertBody"];
export type AlertPage = Schemas["AlertPage"];
export type Calibration = Schemas["CalibrationBody"];
export type Cause = Schemas["CauseBody"];
export type ClusterStatus = Schemas["StatusBody"];
export type Clusters = Schemas["ClustersBody"];
export type Comparison = Schemas["ComparisonBody"];
export type Device = Schemas["WholeDeviceBody"];
export type Drain = Schemas["DrainBody"];
export type DrainState = Schemas["DrainState"];
export type DrainWhole = Schemas["WholeDrainBody"];
export type Drift = Schemas["DriftBody"];
export type ForecastHealth = Schemas["ForecastHealthBody"];
export type Guard = Schemas["GuardBody"];
export type Halt = Schemas["HaltBody"];
export type History = Schemas["HistoryBody"];
export type HistoryEvent = Schemas["HistoryEventBody"];
export type HistoryGroup = Schemas["HistoryGroup"];
export type HistoryPage = Schemas["HistoryPageBody"];
export type Intent = Schemas["Intent"];
export type JournalLine = Schemas["JournalLineBody"];
export type LifeChange = Schemas["LifeChangeBody"];
export type LifeState = Schemas["LifeState"];
export type MessageReceiver = Schemas["MessageReceiverBody"];
export type MessageReceiverTest = Schemas["MessageReceiverTestBody"];
export type Osd = Schemas["OsdBody"];
export type OsdPage = Schemas["OsdPage"];
export type OtherCluster = Schemas["OtherClusterBody"];
export type Outlook = Schemas["OutlookBody"];
export type OutlookPage = Schemas["OutlookPage"];
export type Report = Schemas["ReportBody"];
export type ReportEntry = Schemas["ReportEntryBody"];
export type Overview = Schemas["OverviewBody"];
export type Plan = Schemas["PlanBody"];
export type PolicyPreview = Schemas["PolicyPreviewBody"];
export type PreviewRow = Schemas["PreviewRowBody"];
export type Reason = Schemas["ReasonBody"];
export type Residence = Schemas["ResidenceBody"];
export type Series = Schemas["SeriesBody"];
export type Session = Schemas["SessionBody"];
export type SharedModel = Schemas["SharedModelBody"];
export type Shift = Schemas["ShiftBody"];
export type Silence = Schemas["SilenceBody"];
export type SilencePreview = Schemas["SilencePreviewBody"];
export type Standing = Schemas["BundlePerformanceBody"];
export type Status = Schemas["Status"];
export type StatusThreshold = Schemas["ThresholdBody"];
export type SurvivalPoint = Schemas["PointBody"];
export type Timeline = Schemas["TimelineBody"];
export type WayOut = Schemas["WayOut"];
