/**
 * Tests the complete edit path under faults, with one seed after another. `simulation.ts` describes a run, and
 * `judge.ts` the checks. For more seeds: `npm run sim -- --seconds 60`. A seed that failed is added to REGRESSION_SEEDS
 * with its reason.
 */

import { expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import { drawFaults, type Fault, type FaultKind, FAULTS } from "./faults.ts";
import { Scheduler } from "./scheduler.ts";
import { type Outcome, simulate } from "./simulation.ts";
import { MINIMUM, type SizeName, SIZES } from "./sizes.ts";
import { Trace } from "./trace.ts";
import { telemetry } from "./world.ts";

/** Each entry contains its faults, so that the run stays the same when the drawing of faults changes. */
const REGRESSION_SEEDS: readonly {
  readonly seed: number;
  readonly size: SizeName;
  readonly reason: string;
  readonly faults: readonly Fault[];
}[] = [
  {
    seed: 176,
    size: "large-edit-path",
    reason: "a tab whose clock was set back delayed its next attempt to connect by the same time",
    faults: [fault("tab offline", 7_625, 1_204, 0.181, 0.374), fault("date set back or ahead", 8_090, 150, 0.801, 0.033)],
  },
  {
    seed: 5_000_985,
    size: "large-edit-path",
    reason: "a catch-up broke off beyond the newest snapshot, and the gateway sent the tab back to that snapshot",
    faults: [
      fault("tab too slow", 2_793, 607, 0.813, 0.178),
      fault("log trimmed", 3_075, 1_860, 0.355, 0.049),
      fault("tab too slow", 3_121, 1_057, 0.55, 0.194),
    ],
  },
  {
    seed: 795_278_204,
    size: "large-edit-path",
    reason:
      "an owner that was deposed during a bad connection served catch-ups without the records of its successor, which had ended, and nobody wrote",
    faults: [
      fault("room server's connection stalled", 12_976, 5_686, 0.542, 0.812),
      fault("room server cut off", 15_384, 189, 0.32, 0.01),
      fault("tab offline", 15_559, 2_224, 0.013, 0.746),
      fault("gateway killed", 15_869, 2_089, 0.993, 0.297),
      fault("room server stopped", 15_999, 222, 0.722, 0.458),
      fault("tab closed, another opened", 15_999, 1_864, 0.405, 0.683),
      fault("tab closed, another opened", 15_999, 770, 0.616, 0.952),
    ],
  },
  {
    seed: 7,
    size: "large-edit-path",
    reason:
      "the last member on a gateway left while the owner was disconnected: no gateway reported that to the owner afterwards, and a ghost stayed in the room (found by 50_001_163)",
    faults: [
      fault("room server cut off", 9_187, 1_655, 0.04, 0.2),
      fault("room server cut off", 9_187, 1_655, 0.9, 0.2),
      fault("tab closed, another opened", 9_500, 585, 0.25, 0.4),
      fault("tab closed, another opened", 9_520, 585, 0.75, 0.4),
    ],
  },
  {
    seed: 100_000_155,
    size: "small-edit-path",
    reason:
      "a new owner missed the fields of two members, and their gateway mistook the fields published by the former owner for an answer",
    faults: [
      fault("room claimed at random", 2_383, 1_094, 0.9137120370287448, 0.7349492760840803),
      fault("log trimmed", 2_386, 2_414, 0.006700655212625861, 0.08658591657876968),
      aimed("room server cut off", 2_499, 214, 0.601, 0.674),
    ],
  },
  {
    seed: 93,
    size: "small-edit-path",
    reason: "an author received ACKs for its edits before it had caught up to them, never received the edits between, and stayed behind",
    faults: [
      fault("gateway's sends stalled", 1_341, 196, 0.291484811110422, 0.062053987523540854),
      fault("NATS restarted", 1_984, 1_217, 0.8540607984177768, 0.2085953017231077),
      aimed("room server cut off", 1_999, 182, 0.44335831026546657, 0.22112246393226087),
      fault("gateway's connection stalled", 2_074, 797, 0.004867707611992955, 0.03653250099159777),
      aimed("gateway cut off", 2_128, 298, 0.8420008849352598, 0.30642994144000113),
    ],
  },
  {
    seed: 900_011_003,
    size: "small-edit-path",
    reason: "a tab whose date was set ahead concluded that its device's store does not answer",
    faults: [
      fault("date set back or ahead", 1_995, 325, 0.8080098512582481, 0.9964056643657386),
      aimed("tab loaded again", 2_499, 264, 0.6882632302585989, 0.2185389834921807),
    ],
  },
  {
    seed: 800_000_529,
    size: "small-edit-path",
    reason:
      "a gateway whose connection broke before its start was complete exited at the end of the faults, and no process started it again: a tab reached it at every attempt",
    faults: [fault("gateway's connection stalled", 11, 2_811, 0.8429607665166259, 0.3494606476742774)],
  },
  {
    seed: 1_300_006_666,
    size: "small-edit-path",
    reason:
      "the last member on a gateway left while NATS was partitioned with the owner on the other side: the gateway concluded that the room has no owner, and a ghost stayed",
    faults: [
      aimed("log silent", 1_671, 470, 0.7861884518060833, 0.4205217787530273),
      fault("log slow", 1_942, 2_337, 0.05346909258514643, 0.07829646463505924),
      fault("placement killed", 1_961, 1_169, 0.683702799025923, 0.6434650211594999),
      aimed("NATS nodes cut from each other", 2_452, 2_766, 0.5746868592686951, 0.563098058803007),
      aimed("tab loaded again", 2_465, 800, 0.4490415332838893, 0.30403527175076306),
    ],
  },
  {
    seed: 1_500_008_577,
    size: "small-edit-path",
    reason:
      "a tab learned that its stored position is useless, lost its connection before the snapshot arrived, and continued from that position",
    faults: [
      fault("gateway's machine lost", 1_090, 308, 0.3238227136898786, 0.9274528136011213),
      aimed("gateway's machine lost", 1_181, 251, 0.9905064038466662, 0.04190718196332455),
      aimed("log trimmed", 1_308, 183, 0.7610826068557799, 0.12707994924858212),
      aimed("tab loaded again", 1_433, 163, 0.644932528026402, 0.8817104997579008),
      fault("snapshots away", 1_532, 284, 0.9166391752660275, 0.7474181980360299),
      aimed("gateway killed", 1_987, 150, 0.6752241593785584, 0.05254989885725081),
    ],
  },
  {
    seed: 18,
    size: "small-edit-path",
    reason:
      "the log lost all records of a room, the owner began again in the same epoch, and a gateway accepted the next edits as the successors of the lost ones",
    faults: [aimed("log loses its end", 1_029, 1_228, 0.7855081856250763, 0.7316745303105563)],
  },
  {
    seed: 2_763,
    size: "small-edit-path",
    reason:
      "an owner whose date was behind began an epoch below its own lost epoch, and the positions of tabs in the lost epoch were accepted as positions in the log",
    faults: [
      aimed("log loses its end", 352, 214, 0.766382833942771, 0.6154687739908695),
      fault("rooms bucket lagging", 840, 135, 0.7213845897931606, 0.5328395343385637),
      aimed("room server killed", 853, 2_439, 0.6393945871386677, 0.6150991362519562),
      fault("tab offline", 882, 292, 0.7639519420918077, 0.28989116777665913),
      fault("log trimmed", 987, 200, 0.8590236387681216, 0.8544996127020568),
      aimed("gateway cut off", 1_285, 2_447, 0.9945475205313414, 0.6470835867803544),
      aimed("log slow", 2_015, 1_056, 0.42878990317694843, 0.2486421507783234),
      aimed("log loses its end", 2_499, 906, 0.7037377075757831, 0.8972414706367999),
    ],
  },
  {
    seed: 144,
    size: "large-edit-path",
    reason:
      "an edit that must be the room's first was shown as tentative during a slow log, and a tab that had received it sent it again after another edit was the first",
    faults: [
      fault("document made of content", 0, 0, 0, 0),
      fault("log silent", 528, 2_500, 0, 0.5),
      aimed("room server killed", 2_728, 2_000, 0, 0.5),
    ],
  },
  {
    seed: 45_800,
    size: "large-edit-path",
    reason:
      "a warm copy with lost records skipped the edits that replaced them and followed later ones, and its owner accepted lost positions as positions in the log",
    faults: [
      fault("log loses its end", 2_177, 2_216, 0.21691123163327575, 0.8048553008120507),
      aimed("tab loaded again", 2_207, 2_666, 0.2652556549292058, 0.46697655972093344),
      fault("NATS nodes cut from each other", 2_792, 8_354, 0.7949713477864861, 0.6743528288789093),
      fault("room server paused", 2_891, 3_508, 0.9910755611490458, 0.8066723975352943),
      fault("room claimed at random", 2_924, 2_806, 0.6471435313578695, 0.04431962710805237),
    ],
  },
  {
    seed: 48_008,
    size: "small-edit-path",
    reason:
      "the log lost a whole epoch and the former owner continued: a position of the lost, higher epoch was accepted as a position in this log",
    faults: [
      aimed("document made of content", 13, 128, 0.8389214880298823, 0.33912790450267494),
      aimed("log trimmed", 814, 1_249, 0.2935046099592, 0.37315688864327967),
      aimed("tab offline", 985, 245, 0.3515277151018381, 0.7850714710075408),
      aimed("room server stopped", 1_463, 1_197, 0.621461892966181, 0.4241702938452363),
      fault("room server's connection stalled", 2_055, 1_228, 0.5037144646048546, 0.7344118081964552),
      fault("clock fast or slow", 2_157, 344, 0.517196775181219, 0.742802165215835),
      fault("tab left for a while", 2_164, 57, 0.7368996958248317, 0.1309584523551166),
      aimed("room server killed", 2_499, 1_066, 0.83874844876118, 0.7146134802605957),
      aimed("log loses its end", 2_499, 147, 0.12586649926379323, 0.42759551387280226),
    ],
  },
  {
    seed: 13_000_093,
    size: "small-edit-path",
    reason: "the log lost its end and assigned the numbers again: an owner appended behind a different record with the expected number",
    faults: [
      aimed("placement cut off", 359, 2_321, 0.22545421356335282, 0.4452322705183178),
      aimed("log loses its end", 586, 186, 0.177010428160429, 0.8512773686088622),
      aimed("gateway paused", 641, 2_789, 0.6339959539473057, 0.6909126772079617),
      fault("log silent", 808, 2_684, 0.6930909212678671, 0.9287908454425633),
      fault("room deleted", 1_520, 77, 0.7089852290228009, 0.12084897118620574),
    ],
  },
  {
    seed: 773_965,
    size: "small-edit-path",
    reason:
      "the log lost its end while a tab caught up to a head that it had received: the tab considered itself behind until somebody wrote",
    faults: [
      aimed("tab closed, another opened", 2_372, 817, 0.7492443053051829, 0.151610012864694),
      fault("log loses its end", 2_499, 212, 0.12117264443077147, 0.9667299662251025),
    ],
  },
  {
    seed: 772_941,
    size: "small-edit-path",
    reason: "the same as the seed above, with the gateway killed immediately before",
    faults: [
      fault("gateway killed", 2_276, 2_304, 0.2863443966489285, 0.1848221083637327),
      fault("log loses its end", 2_317, 1_685, 0.4281292841769755, 0.8153843865729868),
    ],
  },
  {
    seed: 117,
    size: "large-edit-path",
    reason:
      "a deposed owner asked a former leader of NATS whether it still owned the room, and a tab from another gateway received `rolled-back` without a loss",
    faults: [
      aimed("document made of content", 16, 1_504, 0.33613765286281705, 0.1591524388641119),
      fault("log's old leader answers", 874, 5_139, 0.9666941994801164, 0.8118052175268531),
    ],
  },
  {
    seed: 144,
    size: "large-edit-path",
    reason:
      "a claim received an old checkpoint from a former leader, concluded that trimmed records were lost, and ordered edits a second time",
    faults: [
      fault("room claimed at random", 2_132, 3_695, 0.7306334159802645, 0.2170403110794723),
      fault("placement killed", 2_610, 3_663, 0.11268533277325332, 0.27105747163295746),
      fault("log's old leader answers", 2_925, 753, 0.6686836217995733, 0.07565863057971),
      aimed("tab asleep", 4_762, 577, 0.46471542958170176, 0.2932344696018845),
      aimed("tab too slow", 6_054, 4_133, 0.3104081416968256, 0.17744793114252388),
    ],
  },
  {
    seed: 4_400_414,
    size: "small-edit-path",
    reason: "two tabs read the log at the same time, and each request of one of them read the log from its beginning",
    faults: [
      fault("NATS restarted", 1_846, 2_555, 0.7266897868830711, 0.047772096237167716),
      fault("tab's connection silent", 2_499, 186, 0.6557001664768904, 0.9155449355021119),
    ],
  },
  {
    seed: 2,
    size: "small",
    reason: "the log ended below a checkpoint, and the document service took new records for ones that the checkpoint covered",
    faults: [fault("log loses its end", 1_355, 161, 0.42426122399047017, 0.8495093695819378)],
  },
  {
    seed: 3,
    size: "small",
    reason:
      "the log and its stores lost different ends, and the next owner's epoch began at the head of a checkpoint that the log had lost",
    faults: [fault("log and stores lose their ends apart", 2_499, 2_921, 0.2145823820028454, 0.10188560630194843)],
  },
  {
    seed: 21,
    size: "small",
    reason: "a floor from before a loss trimmed records that reused lost numbers, before the boards had counted them",
    faults: [fault("log loses its end", 2_499, 696, 0.4656146657653153, 0.593532346887514)],
  },
  {
    seed: 1_294,
    size: "small",
    reason:
      "a sentinel that was in flight when the log lost its end raised the boards' floor again, and the boards lacked the records trimmed below it",
    faults: [
      fault("document service's connection stalled", 257, 314, 0.9237855842802674, 0.7251735706813633),
      fault("log and stores lose their ends apart", 1_120, 743, 0.7746901384089142, 0.4049696051515639),
    ],
  },
  {
    seed: 2_420,
    size: "large",
    reason: "the bucket lost a checkpoint, and the document service trimmed behind it because it still held it in memory",
    faults: [
      fault("object store away", 7_469, 802, 0.780636174371466, 0.5233651136513799),
      aimed("log and stores lose their ends apart", 14_786, 2_292, 0.12298268871381879, 0.1920145673211664),
    ],
  },
  {
    seed: 7_060_620,
    size: "large",
    reason: "a sweep gave a room records that had the numbers of lost ones, before the partition had noticed the loss",
    faults: [fault("log and stores lose their ends apart", 4_793, 406, 0.06855408172123134, 0.028802077285945415)],
  },
  {
    seed: 30_640,
    size: "large",
    reason: "the bucket and the store lost a checkpoint and its snapshot, and the room was set aside although the log had every edit",
    faults: [
      fault("document made of content", 37, 3_832, 0.41387241100892425, 0.8184420170728117),
      fault("log and stores lose their ends apart", 2_065, 141, 0.5556687857024372, 0.7650418295525014),
    ],
  },
  {
    seed: 91_478,
    size: "small",
    reason: "an owner that was fenced in the lost part of the log continued in its epoch, below a checkpoint of a later one",
    faults: [
      aimed("room server paused", 1_292, 1_520, 0.9813923039473593, 0.24167091911658645),
      fault("log and stores lose their ends apart", 2_499, 642, 0.1229485310614109, 0.912757143843919),
    ],
  },
  {
    seed: 920_640,
    size: "large",
    reason: "a document service removed the snapshot that its own checkpoint names, because a former leader answered with the one before",
    faults: [
      fault("document made of content", 48, 300, 0.5312628282699734, 0.9640377489849925),
      aimed("log silent", 3077, 5539, 0.502441736869514, 0.33707425091415644),
      aimed("tab left for a while", 3693, 7607, 0.7584613838698715, 0.8569121325854212),
      fault("log silent", 3794, 1824, 0.5492175777908415, 0.9233152116648853),
      aimed("lease buckets lose their ends", 3843, 323, 0.10846520494669676, 0.4561701889615506),
      aimed("document service's machine lost", 3862, 1132, 0.16493062349036336, 0.6332659358158708),
      aimed("Redis loses data", 3974, 3641, 0.5830233474262059, 0.6254475857131183),
      aimed("gateway's presence cut off", 3981, 5002, 0.40221563167870045, 0.07390346028842032),
      aimed("tab closed, another opened", 3996, 2405, 0.9333665266167372, 0.39564518723636866),
      aimed("date set back or ahead", 4135, 2338, 0.46597978193312883, 0.3765713833272457),
      aimed("log's old leader answers", 4251, 6109, 0.9383745235390961, 0.0832771179266274),
      aimed("gateway stopped", 4262, 8802, 0.4011164759285748, 0.24356580874882638),
      fault("room server paused", 4424, 1218, 0.40698101511225104, 0.7217789422720671),
      fault("room server stopped", 4427, 615, 0.5828657678794116, 0.2915035479236394),
      aimed("gateway's machine lost", 4528, 1796, 0.3901529994327575, 0.5364947335328907),
    ],
  },
  {
    seed: 920_418,
    size: "small",
    reason: "the log lost an epoch that only presence had received, and no search for an owner named it: participant lists stayed wrong",
    faults: [
      aimed("leaderboard killed", 561, 2886, 0.39119667652994394, 0.7185294374357909),
      aimed("tab's sends lost", 723, 633, 0.618442922597751, 0.24593600747175515),
      aimed("room server's sends stalled", 792, 303, 0.27461688220500946, 0.9967707104515284),
      aimed("tab closed, another opened", 830, 96, 0.6744217735249549, 0.6066694143228233),
      fault("object store damages writes", 923, 345, 0.10185688268393278, 0.5177870958577842),
      fault("hostile client in the room", 1118, 375, 0.26506061130203307, 0.8674799052532762),
      aimed("room server cut off", 1187, 670, 0.44999498198740184, 0.06327771977521479),
      fault("NATS nodes cut from each other", 1713, 996, 0.7097259394358844, 0.6340722516179085),
      fault("rooms bucket lagging", 2124, 68, 0.5606015387456864, 0.9522049752995372),
      aimed("log loses its end", 2317, 107, 0.852345822378993, 0.5326404399238527),
    ],
  },
  {
    seed: 795_651_803,
    size: "small",
    reason: "replies without an inbox were dropped: no claim of a deleted room was answered, and its members waited forever",
    faults: [
      aimed("NATS restarted", 731, 1028, 0.40838963026180863, 0.8806724993046373),
      aimed("room deleted", 1517, 1319, 0.47457628790289164, 0.670761649729684),
    ],
  },
  {
    seed: 4_665_037_632,
    size: "small",
    reason: "the stores lost a released document, its room merged later edits into the older snapshot, and the log was trimmed",
    faults: [
      fault("placement killed", 478, 324, 0.5258096258621663, 0.26738268276676536),
      fault("document service killed", 916, 170, 0.6469620545394719, 0.2840733483899385),
      aimed("leaderboard killed", 1_073, 2_810, 0.8293685482349247, 0.7378730662167072),
      fault("rooms bucket away", 1_126, 980, 0.8994070624466985, 0.8349069533869624),
      fault("document service's connection stalled", 1_138, 2_427, 0.1392229211051017, 0.14456582139246166),
      fault("room server stopped", 1_361, 121, 0.07214834121987224, 0.2653849069029093),
      aimed("log and stores lose their ends apart", 2_124, 287, 0.06961576105095446, 0.05785973439924419),
    ],
  },
  {
    seed: 932_026,
    size: "small",
    reason:
      "a former document service wrote its checkpoint again, which named a lost snapshot, because the bucket gave lost revisions anew",
    faults: [
      fault("leaderboard cut off", 1_742, 212, 0.8894916363060474, 0.8069643995258957),
      fault("document service's machine lost", 1_764, 2_136, 0.6096749680582434, 0.15195146761834621),
      aimed("NATS restarted", 2_326, 2_381, 0.4446549410931766, 0.9048416593577713),
      fault("leaderboard stopped", 2_420, 413, 0.23355715884827077, 0.3846854956354946),
      aimed("gateway's machine lost", 2_499, 2_173, 0.46776592289097607, 0.9503556941635907),
      fault("log and stores lose their ends apart", 2_499, 358, 0.8409839915111661, 0.34557064110413194),
    ],
  },
  {
    seed: 950_351,
    size: "small",
    reason:
      "log and Redis lost their ends, and Redis was at the same seq of the lost epoch: a batch was added to a board that lacked the edits before it",
    faults: [
      aimed("document made of content", 2, 605, 0.933403400471434, 0.9853830260690302),
      aimed("document service killed", 70, 246, 0.9743200296070427, 0.9221358255017549),
      aimed("leaderboard's machine lost", 266, 316, 0.9773120319005102, 0.06215347140096128),
      aimed("room server cut off", 746, 881, 0.43459686427377164, 0.3291061350610107),
      fault("leaderboard's machine lost", 1_105, 280, 0.6841265656985343, 0.821984167676419),
      aimed("log and stores lose their ends apart", 1_144, 149, 0.8338124484289438, 0.933377638226375),
      aimed("document service killed", 1_446, 413, 0.3641929570585489, 0.2973851701244712),
      fault("Redis loses data", 1_869, 468, 0.23806145135313272, 0.2121412418782711),
      fault("gateway's machine lost", 1_968, 232, 0.19763895496726036, 0.5324690281413496),
      fault("Redis loses data", 2_366, 102, 0.9810538885649294, 0.12120858975686133),
    ],
  },
  {
    seed: 981127,
    size: "small",
    reason: "a document service wrote an old checkpoint over a newer one: the room had adopted the newer one after the decision to write",
    faults: [
      aimed("room server killed", 1193, 301, 0.4402375884819776, 0.45958603266626596),
      fault("document service's connection stalled", 1504, 2074, 0.2509582922793925, 0.847534311003983),
      fault("gateway killed", 1721, 2577, 0.9401454869657755, 0.19613626459613442),
    ],
  },
  {
    seed: 985030,
    size: "small",
    reason: "the log seemed to lose its end while a document service stopped, and the end of its drain threw",
    faults: [
      aimed("room deleted", 785, 1048, 0.6132644712924957, 0.9068871005438268),
      fault("document service stopped", 841, 221, 0.9091932259034365, 0.5643084652256221),
    ],
  },
  {
    seed: 997046,
    size: "small",
    reason: "a checkpoint's date was wrong, and the log was trimmed before the boards had counted it",
    faults: [
      aimed("log refusing", 168, 2605, 0.7784353147726506, 0.43592606391757727),
      aimed("log refusing", 981, 666, 0.33384194364771247, 0.8589967058505863),
      aimed("document service cut off", 1554, 91, 0.18457046221010387, 0.12846650695428252),
      aimed("date set back or ahead", 2430, 340, 0.7829078901559114, 0.16367899370379746),
    ],
  },
  {
    seed: 977055,
    size: "small",
    reason: "the checkpoints below a floor were lost, and the boards counted an edit after the gap",
    faults: [
      aimed("leaderboard's machine lost", 357, 334, 0.5472667422145605, 0.9609374180436134),
      aimed("NATS restarted", 710, 273, 0.887951462296769, 0.13355597807094455),
      aimed("log and stores lose their ends apart", 1167, 511, 0.4662910057231784, 0.9279740578494966),
      aimed("Redis loses data", 2488, 382, 0.6436457179952413, 0.7492083394899964),
    ],
  },
  {
    seed: 1022992,
    size: "small",
    reason: "a tab was given a lost edit between its JOIN and the answer of an owner that does not have it",
    faults: [
      fault("placement killed", 1778, 59, 0.06642737751826644, 0.9481605556793511),
      fault("tab left for a while", 2103, 1862, 0.5372365997172892, 0.5675134828779846),
      aimed("Redis loses data", 2317, 906, 0.6227919191587716, 0.18314680783078074),
      aimed("gateway stopped", 2401, 353, 0.4400707553140819, 0.8181485834065825),
      fault("log's old leader answers", 2499, 161, 0.8129225596785545, 0.6116933438461274),
      aimed("tab loaded again", 2499, 311, 0.7107246115338057, 0.4146272633224726),
      aimed("log loses its end", 2499, 1172, 0.140870708739385, 0.3640042170882225),
    ],
  },
  {
    seed: 1040099,
    size: "small",
    reason: "a tab's field from an earlier connection was missing in the snapshot after its join, and stayed in the room",
    faults: [
      aimed("snapshots away", 159, 120, 0.1924034310504794, 0.8708230436313897),
      aimed("room server's machine lost", 596, 249, 0.8520367967430502, 0.8873846307396889),
      fault("room server paused", 887, 860, 0.40220213611610234, 0.28104817075654864),
      aimed("leaderboard killed", 1227, 814, 0.9301687465049326, 0.31642226059921086),
      fault("room server's presence cut off", 1439, 183, 0.5189947641920298, 0.2166488473303616),
      aimed("lease buckets lose their ends", 1774, 499, 0.23601755546405911, 0.22408164897933602),
      aimed("tab receives nothing", 1906, 454, 0.03262325655668974, 0.09814573777839541),
      aimed("room server's presence cut off", 2093, 346, 0.16623294702731073, 0.23348768125288188),
    ],
  },
  {
    seed: 1240600,
    size: "large",
    reason: "a tab that waited for the snapshot of a deleted room, at a gateway that missed the deletion, waited permanently",
    faults: [
      aimed("gateway's machine lost", 9088, 93, 0.13945594988763332, 0.8544499515555799),
      aimed("gateway stopped", 14763, 6270, 0.6099517201073468, 0.6350427952129394),
      aimed("snapshots away", 14952, 1505, 0.7373768284451216, 0.29115485213696957),
      aimed("NATS restarted", 15255, 254, 0.12417614739388227, 0.6472480383235961),
      fault("gateway killed", 15288, 661, 0.5645338769536465, 0.05399127188138664),
      aimed("gateway killed", 15758, 4828, 0.7957814594265074, 0.476072738179937),
      aimed("room deleted", 15834, 570, 0.3092095418833196, 0.13516640313901007),
    ],
  },
  {
    seed: 6001571,
    size: "small",
    reason: "a tab that caught up while the log lost its end waited to be synced for edits that no longer exist",
    faults: [
      aimed("document made of content", 6, 149, 0.6194946183823049, 0.36729158950038254),
      aimed("tab closed, another opened", 1719, 462, 0.6632049339823425, 0.9964698457624763),
      aimed("room moved", 1742, 511, 0.9338395150844008, 0.36491930834017694),
      aimed("room server killed", 2128, 302, 0.6026605325751007, 0.4125296075362712),
      aimed("tab closed, another opened", 2499, 171, 0.24753372697159648, 0.21572322328574955),
      fault("log and stores lose their ends apart", 2499, 337, 0.5569702400825918, 0.71826231200248),
    ],
  },
  {
    seed: 4001200,
    size: "large",
    reason: "a deletion read its checkpoint from a former leader, and took the refused mark that nothing is left for another service's",
    faults: [
      fault("room server paused", 3078, 388, 0.5715885879471898, 0.6923202674370259),
      aimed("room server stopped", 3325, 2943, 0.1954258792102337, 0.21862525586038828),
      aimed("log's old leader answers", 4048, 2005, 0.8250477244146168, 0.8026575774420053),
      fault("rooms bucket away", 4190, 145, 0.13730656076222658, 0.621332127135247),
      fault("room deleted", 9083, 5837, 0.760409148177132, 0.36535775288939476),
      fault("NATS nodes cut from each other", 9750, 373, 0.4374872907064855, 0.7008639129344374),
      aimed("room server paused", 9806, 8757, 0.5616948562674224, 0.7944447675254196),
    ],
  },
  {
    seed: 7003797,
    size: "small",
    reason: "a store lost a snapshot before the write of its checkpoint arrived, and the log was trimmed behind that checkpoint",
    faults: [
      aimed("document service killed", 671, 2198, 0.5800659190863371, 0.1732651183847338),
      aimed("room server's connection stalled", 681, 2567, 0.7203491642139852, 0.9872025002259761),
      fault("room server's machine lost", 1411, 58, 0.5084815111476928, 0.8254329920746386),
      aimed("log and stores lose their ends apart", 2128, 556, 0.3622629560995847, 0.9573479720856994),
    ],
  },
  {
    seed: 7008680,
    size: "large",
    reason:
      "a gateway that followed a room again accepted a late answer to a hostile client's question, because request numbers began again",
    faults: [
      aimed("storage of the log full", 1759, 584, 0.9933049194514751, 0.5565255146939307),
      fault("Redis away", 1958, 1202, 0.0632134024053812, 0.2203702291008085),
      fault("room moved", 2105, 1550, 0.47338758828118443, 0.7876736498437822),
      aimed("log's old leader answers", 2343, 143, 0.5630329670384526, 0.4749412713572383),
      aimed("gateway cut off", 3366, 1213, 0.867151802405715, 0.8751302047166973),
      aimed("hostile client in the room", 3755, 340, 0.8234381293877959, 0.5751943313516676),
    ],
  },
  {
    seed: 392,
    size: "first-content",
    reason: "a gateway let tabs into an empty room, because the log had its first edit, of which the owner had no answer yet",
    faults: [
      fault("document made of content", 13, 161, 0.13970142090693116, 0.41654280852526426),
      aimed("log's leader changing", 537, 451, 0.9963506681378931, 0.835111258784309),
    ],
  },
  {
    seed: 452,
    size: "first-content",
    reason: "the same for the application's content, which the gateway had received before the owner knew that it was stored",
    faults: [
      aimed("tab offline", 230, 752, 0.9500192513223737, 0.7602903309743851),
      fault("new room edited over HTTP", 400, 265, 0.5856794323772192, 0.1636968634556979),
      aimed("gateway cut off", 451, 70, 0.7209639465436339, 0.9219381453003734),
      aimed("hostile client in the room", 568, 1154, 0.5700068057049066, 0.32653130288235843),
      aimed("log's answers lost", 723, 54, 0.651443843729794, 0.0590677943546325),
    ],
  },
  {
    seed: 7_080_360,
    size: "large",
    reason: "the judge refused an edit that the log had lost and a tab that still held it as tentative had submitted again",
    faults: [
      fault("log silent", 2_277, 3_055, 0.2, 0.811),
      aimed("gateway stopped", 4_664, 1_302, 0.545, 0.546),
      fault("tab asleep", 5_431, 2_759, 0.737, 0.462),
      aimed("tab loaded again", 5_483, 80, 0.077, 0.933),
      aimed("gateway killed", 5_854, 380, 0.133, 0.506),
      fault("log and stores lose their ends apart", 6_014, 3_328, 0.346, 0.455),
    ],
  },
  {
    seed: 7_105_516,
    size: "small",
    reason:
      "a paused owner appended to a log that had lost its end, below a checkpoint with lower seqs; the next claim went on above that record, and nobody could open the room",
    faults: [
      aimed("log's leader changing", 1_525, 175, 0.4178262338973582, 0.33742613159120083),
      aimed("room server paused", 1_832, 1_177, 0.22403305699117482, 0.14030091604217887),
      aimed("document service stopped", 2_191, 422, 0.6846102105919272, 0.8650294959079474),
      fault("leaderboard killed", 2_283, 2_522, 0.9463763716630638, 0.550026225624606),
      aimed("log and stores lose their ends apart", 2_499, 82, 0.2504358855076134, 0.6329982841853052),
    ],
  },
  {
    seed: 7_143_367,
    size: "small",
    reason: "a member that had caught up beyond its room kept edits that the log had lost",
    faults: [
      aimed("snapshots away", 765, 79, 0.8976268791593611, 0.7574209852609783),
      aimed("document service's connection stalled", 921, 229, 0.5867134595755488, 0.4704952852334827),
      aimed("document service cut off", 1_252, 264, 0.669729910325259, 0.6102954274974763),
      aimed("room moved", 1_577, 2_363, 0.6991306857671589, 0.7400722657330334),
      aimed("log and stores lose their ends apart", 2_348, 1_171, 0.05352137447334826, 0.35915797646157444),
    ],
  },
  {
    seed: 7_170_351,
    size: "small",
    reason:
      "a document service lost its lease after it had written a snapshot, took the lease again, and did not sweep this snapshot although the room was deleted",
    faults: [
      aimed("document made of content", 24, 1_985, 0.496, 0.987),
      aimed("room deleted", 215, 1_993, 0.406, 0.391),
      fault("gateway's connection stalled", 295, 2_444, 0.368, 0.485),
      fault("Redis loses data", 493, 2_873, 0.831, 0.369),
      aimed("object store away", 719, 337, 0.088, 0.627),
      aimed("leaderboard paused", 756, 733, 0.601, 0.876),
      aimed("NATS nodes cut from each other", 778, 2_421, 0.051, 0.003),
      fault("log and stores lose their ends apart", 834, 69, 0.882, 0.982),
      aimed("room server receives nothing", 974, 289, 0.811, 0.125),
      aimed("gateway paused", 1_337, 783, 0.677, 0.532),
      aimed("leaderboard's connection stalled", 1_401, 234, 0.403, 0.701),
      aimed("room server killed", 2_293, 617, 0.135, 0.963),
      aimed("document service cut off", 2_299, 847, 0.831, 0.63),
      aimed("NATS nodes cut from each other", 2_486, 311, 0.819, 0.474),
    ],
  },
  {
    seed: 7_195_862,
    size: "small",
    reason: "the checkpoint of a snapshot was lost while its service ran, so the deletion of the room left the snapshot in the store",
    faults: [
      aimed("room deleted", 2_499, 1_935, 0.1602773810736835, 0.5609542140737176),
      aimed("log and stores lose their ends apart", 2_499, 845, 0.004239385714754462, 0.81432123365812),
    ],
  },
  {
    seed: 7_302_011,
    size: "small-edit-path",
    reason:
      "a gateway asked another one for its bans before that one had received them, the gateway that knew them ended, and the banned user was admitted",
    faults: [
      fault("user banned", 1_657, 1_097, 0.761475790059194, 0.8901439316105098),
      aimed("gateway stopped", 2_136, 96, 0.039538403041660786, 0.8545828778296709),
      fault("gateway killed", 2_499, 314, 0.7768408516421914, 0.9701357656158507),
    ],
  },
  {
    seed: 7_400_027,
    size: "small",
    reason: "a request was refused because another one with its key waited at the gateway, and the log had it",
    faults: [
      aimed("edit with a key repeated over HTTP", 141, 903, 0.6108174666296691, 0.05296500399708748),
      aimed("edit with a key repeated over HTTP", 214, 822, 0.11976642929948866, 0.10344118275679648),
      aimed("edit with a key repeated over HTTP", 300, 317, 0.9163072425872087, 0.7175631837453693),
      aimed("gateway cut off", 1_864, 945, 0.4497379483655095, 0.8721907939761877),
    ],
  },
  {
    seed: 7_600_198,
    size: "small",
    reason: "a state at a time before a room's first edit had this edit, which the log received during the read",
    faults: [
      aimed("document made of content", 8, 1_123, 0.07386791449971497, 0.4132372699677944),
      aimed("edit with a key repeated over HTTP", 312, 675, 0.21066268999129534, 0.4752007971983403),
      aimed("history read over HTTP", 524, 52, 0.8831309129018337, 0.9763958870898932),
      fault("webhook endpoint failing", 2_499, 336, 0.9129657903686166, 0.947087146807462),
    ],
  },
  {
    seed: 7_391_258,
    size: "small",
    reason: "the log lost edits that a version has, and an earlier state had this version with later edits of the new epoch",
    faults: [
      fault("second room opened", 376, 1_237, 0.7474006309639663, 0.6899450472556055),
      aimed("history read over HTTP", 559, 196, 0.2849733792245388, 0.03956431522965431),
      fault("leaderboard killed", 647, 805, 0.6209671897813678, 0.7554813867900521),
      fault("history read over HTTP", 816, 113, 0.2384705871809274, 0.40570021979510784),
      fault("log and stores lose their ends apart", 1_373, 1_731, 0.2062470829114318, 0.23714099521748722),
      aimed("user kicked", 2_499, 1_329, 0.09924587770365179, 0.5558755490928888),
    ],
  },
  {
    seed: 7_412_172,
    size: "small",
    reason: "a bucket that lost its end gave a revision again, and an entry without the segments of another service replaced it",
    faults: [
      aimed("document made of content", 17, 219, 0.7367866837885231, 0.3847406941931695),
      fault("document service paused", 2_015, 301, 0.18573539378121495, 0.656294816872105),
      aimed("webhook endpoint hung", 2_201, 165, 0.08192851627245545, 0.42277237004600465),
      aimed("log and stores lose their ends apart", 2_237, 532, 0.9098323828075081, 0.38692591548897326),
      fault("tab left for a while", 2_499, 820, 0.588317358866334, 0.7478958636056632),
      aimed("document service killed", 2_499, 147, 0.9674072067718953, 0.5849070292897522),
      aimed("leaderboard stopped", 2_499, 75, 0.43167525297030807, 0.8691777470521629),
      fault("large text pasted", 2_499, 68, 0.5346900545991957, 0.5335223563015461),
    ],
  },
  {
    seed: 7_662_968,
    size: "small",
    reason: "history reads that waited long for their turn read a copy of the room that had left memory, and were never answered",
    faults: [
      aimed("edit with a key repeated over HTTP", 11, 1245, 0.8098723865114152, 0.3844405284617096),
      aimed("document made of content", 23, 1768, 0.22854527016170323, 0.7729943338781595),
      aimed("edit with a key repeated over HTTP", 57, 272, 0.880748817929998, 0.1879766786005348),
      fault("earlier state restored", 611, 1939, 0.9168784921057522, 0.4018499993253499),
      aimed("edit with a key repeated over HTTP", 712, 1061, 0.006174575537443161, 0.5908988344017416),
      aimed("earlier state restored", 838, 347, 0.04359621251933277, 0.8245440546888858),
      fault("second room opened", 1137, 315, 0.31259603262878954, 0.7737838765606284),
      fault("second room opened", 1156, 240, 0.2086829685140401, 0.5851011534687132),
      aimed("earlier state restored", 1610, 166, 0.04362473380751908, 0.0032213672529906034),
      fault("earlier state restored", 1775, 276, 0.2781866528093815, 0.6060493353288621),
      aimed("earlier state restored", 1791, 2210, 0.7113677742891014, 0.17295430903322995),
      aimed("room server cut off", 2457, 114, 0.29803132615052164, 0.5512171147856861),
      fault("log's old leader answers", 2499, 218, 0.037235889583826065, 0.43409435567446053),
      aimed("document service cut off", 2499, 1679, 0.15319648594595492, 0.45236536604352295),
      fault("gateway's sends stalled", 2499, 142, 0.8316311787348241, 0.4198852761182934),
      fault("snapshots away", 2499, 314, 0.8988896247465163, 0.16775160399265587),
      aimed("tab left for a while", 2499, 114, 0.20658565894700587, 0.29895918630063534),
      aimed("document service killed", 2499, 121, 0.9501664151903242, 0.8289298203308135),
      fault("document service killed", 2499, 233, 0.7225666644517332, 0.7924856916069984),
      aimed("leaderboard paused", 2499, 126, 0.946670895209536, 0.7781131255906075),
      aimed("document service's connection stalled", 2499, 501, 0.8344439065549523, 0.6909239678643644),
      fault("object store damages writes", 2499, 1965, 0.4945352023933083, 0.8963449026923627),
      fault("object store damages writes", 2499, 1061, 0.36093947873450816, 0.8992693305481225),
    ],
  },
];
const SIZE_NAMES = ["small", "large", "small-edit-path", "large-edit-path", "local-owners", "batches", "first-content"] as const;
/** Fresh seeds of a size, from 1. */
const FRESH_COUNT = 20;
const FRESH_COUNTS: { readonly [Size in SizeName]?: number } = { "small": 24, "small-edit-path": 40 };

const counted = telemetry();

/** One run for each fresh seed, which several tests judge. */
const freshRuns = new Map<string, Promise<Outcome>>();

function freshRun(seed: number, size: SizeName): Promise<Outcome> {
  const key = `${size} ${seed}`;
  const run = freshRuns.get(key) ?? simulate(seed, { size, telemetry: counted });
  freshRuns.set(key, run);
  return run;
}

test.each(REGRESSION_SEEDS)("[SIM1] the regression seed $seed passes: $reason", async ({ seed, size, faults }) => {
  expect((await simulate(seed, { size, telemetry: counted, faults })).failure?.reason).toBeUndefined();
});

test.each(SIZE_NAMES)(
  "[SIM1] under all faults no acknowledged edit is lost, no edit is ordered twice, and all clients end with all edits: %s",
  async (size) => {
    const failures = [];
    for (let seed = 1; seed <= (FRESH_COUNTS[size] ?? FRESH_COUNT); seed++) {
      const { failure } = await freshRun(seed, size);
      if (failure !== undefined) failures.push({ seed, size, reason: failure.reason });
    }
    expect(failures).toEqual([]);
  },
);

test.each(SIZE_NAMES)("[SIM2] a seed replays exactly, with and without a trace: %s", async (size) => {
  const [first, other] = [await freshRun(1, size), await freshRun(2, size)];
  const again = await simulate(1, { size, telemetry: counted, verbose: true });
  expect([again.hash, again.steps, again.edits]).toEqual([first.hash, first.steps, first.edits]);
  expect(other.hash).not.toBe(first.hash);
});

test.each(SIZE_NAMES)("[SIM3] nearly every run has a minimum of steps, edits and effective faults: %s", async (size) => {
  const outcomes: Outcome[] = [];
  for (let seed = 1; seed <= FRESH_COUNT; seed++) outcomes.push(await freshRun(seed, size));
  const full = outcomes.filter(
    ({ steps, edits, struck }) =>
      steps >= MINIMUM.steps && edits >= MINIMUM.edits && struck.filter(({ met }) => met).length >= MINIMUM.faults,
  );
  expect(full.length).toBeGreaterThanOrEqual(15);
});

test("[SIM4] the seeds draw every kind of fault", () => {
  const drawn = SIZE_NAMES.flatMap((size) =>
    Array.from({ length: 100 }, (_, seed) => drawFaults(new Prng(seed), SIZES[size]).map(({ kind }) => kind)).flat(),
  );
  expect([...new Set(drawn)].sort()).toEqual(Object.keys(FAULTS).sort());
});

test("[SIM7] a run in which time does not advance fails and names the event that repeats", async () => {
  const scheduler = new Scheduler(new Trace({ verbose: false }), { explains: false });
  const goRoundInCircles = (): void => void scheduler.after(0, goRoundInCircles);
  scheduler.after(5, goRoundInCircles);
  await expect(scheduler.runUntil(scheduler.now + 1_000, () => false)).rejects.toThrow(/time stands still[^]*goRoundInCircles/);
});

function fault(kind: FaultKind, atMs: number, forMs: number, whom: number, how: number): Fault {
  return { kind, atMs, forMs, whom, how };
}

/** `aimed`: affects a process that has state to lose, if there is one. */
function aimed(...of: Parameters<typeof fault>): Fault {
  return { ...fault(...of), aimed: true };
}
