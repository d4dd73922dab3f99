// What an earlier experiment reached and proved on the graphs that ./bench plan measures: (graph, budget, proven lower
// bound, its own cost after 3 to 30 s), all as ratios to the cost of running everything once.
#pragma once

namespace reprise::benchmarks {

struct Reference {
  const char* graph;
  const char* budget;  // a share of the keep-everything peak, or a multiple of the floor
  double bound;
  double cost;
};

inline constexpr Reference references[] = {
    {"cm_VGG16_train", "0.90", 1.019677, 1.019677},
    {"cm_VGG16_train", "floor x 1.02", 1.019677, 1.019677},
    {"cm_VGG19_train", "0.90", 1.001042, 1.001042},
    {"cm_VGG19_train", "0.80", 1.027559, 1.027559},
    {"cm_VGG19_train", "floor x 1.02", 1.027161, 1.027699},
    {"cm_vgg_unet_train", "0.90", 1.011289, 1.011289},
    {"cm_vgg_unet_train", "0.80", 1.019836, 1.019836},
    {"cm_vgg_unet_train", "0.70", 1.029673, 1.029673},
    {"cm_vgg_unet_train", "0.60", 1.044509, 1.044509},
    {"cm_vgg_unet_train", "0.50", 1.069666, 1.069666},
    {"cm_vgg_unet_train", "floor x 1.02", 1.107079, 1.128044},
    {"cm_fcn_8_vgg_train", "0.90", 1.000294, 1.000294},
    {"cm_fcn_8_vgg_train", "0.80", 1.001361, 1.001361},
    {"cm_fcn_8_vgg_train", "0.70", 1.008915, 1.008915},
    {"cm_fcn_8_vgg_train", "floor x 1.02", 1.016179, 1.016184},
    {"cm_MobileNet_train", "0.90", 1.001635, 1.001635},
    {"cm_MobileNet_train", "0.80", 1.003702, 1.003702},
    {"cm_MobileNet_train", "0.70", 1.006262, 1.006262},
    {"cm_MobileNet_train", "0.60", 1.010674, 1.010674},
    {"cm_MobileNet_train", "0.50", 1.016350, 1.016350},
    {"cm_MobileNet_train", "0.30", 1.035168, 1.039857},
    {"cm_MobileNet_train", "floor x 1.02", 1.056330, 1.089585},
    {"cm_ResNet50_train", "0.90", 1.001085, 1.001085},
    {"cm_ResNet50_train", "0.80", 1.002786, 1.002786},
    {"cm_ResNet50_train", "0.70", 1.005645, 1.005645},
    {"cm_ResNet50_train", "0.60", 1.009626, 1.009626},
    {"cm_ResNet50_train", "0.50", 1.014988, 1.014988},
    {"cm_ResNet50_train", "0.30", 1.033117, 1.036384},
    {"cm_ResNet50_train", "0.20", 1.050484, 1.063426},
    {"cm_ResNet50_train", "floor x 1.20", 1.078406, 1.165147},
    {"random_layered_n100", "0.90", 1.007892, 1.007892},
    {"random_layered_n100", "0.80", 1.022965, 1.022965},
    {"random_layered_n250", "0.90", 1.006091, 1.009039},
    {"random_layered_n250", "0.80", 1.025318, 1.042606},
    {"random_layered_n1000", "0.90", 1.002835, 1.006829},
    {"random_layered_n1000", "0.80", 1.016041, 1.026302},
    {"dtr_resnet32", "0.90", 1.013776, 1.013776},
    {"dtr_resnet32", "0.70", 1.042818, 1.042822},
    {"dtr_resnet32", "0.50", 1.087433, 1.091621},
    {"dtr_resnet32", "0.30", 1.166157, 1.177884},
    {"dtr_resnet32", "0.20", 1.210112, 1.227949},
    {"dtr_resnet32", "0.10", 1.254678, 1.557053},
    {"dtr_unet", "0.90", 1.009860, 1.012642},
    {"dtr_unet", "0.70", 1.039573, 1.045998},
    {"dtr_unet", "0.50", 1.074692, 1.081587},
    {"dtr_unet", "0.30", 1.120629, 1.149143},
    {"dtr_unet", "0.20", 1.181711, 1.470119},
    {"dtr_transformer", "0.90", 1.008790, 1.009007},
    {"dtr_transformer", "0.70", 1.027671, 1.027712},
    {"dtr_transformer", "0.50", 1.050052, 1.050178},
    {"dtr_transformer", "0.30", 1.075008, 1.076151},
    {"dtr_transformer", "0.20", 1.098954, 1.109902},
    {"dtr_transformer", "0.10", 1.168297, 1.250917},
    {"dtr_inceptionv4", "0.90", 1.009173, 1.009198},
    {"dtr_inceptionv4", "0.70", 1.035237, 1.035300},
    {"dtr_inceptionv4", "0.50", 1.069289, 1.069427},
    {"dtr_inceptionv4", "0.30", 1.111378, 1.111647},
    {"dtr_inceptionv4", "0.20", 1.138557, 1.149008},
    {"dtr_treelstm", "0.90", 1.015918, 1.016309},
    {"dtr_treelstm", "0.70", 1.063448, 1.076099},
    {"dtr_treelstm", "0.50", 1.124330, 1.147621},
    {"dtr_treelstm", "0.30", 1.195473, 1.241150},
    {"dtr_treelstm", "0.10", 1.290108, 1.365189},
    {"dtr_lstm", "0.90", 1.004365, 1.004444},
    {"dtr_lstm", "0.50", 1.034423, 1.058012},
    {"dtr_lstm", "0.30", 1.072122, 1.184253},
    {"dtr_lstm", "0.10", 1.235449, 1.412463},
};

}  // namespace reprise::benchmarks
